// SPDX-License-Identifier: Apache-2.0
// What `tessera cache` does. Unlike the caches themselves, these functions were asked for by name
// and say what failed.
#include <algorithm>
#include <system_error>
#include <utility>

#include "selection/blob_file.hpp"
#include "selection/cache.hpp"
#include "selection/choices_store.hpp"
#include "tessera/error.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "choices-";
constexpr std::string_view kDamaged = ".damaged";

[[noreturn]] void fail(const fs::path& path, const std::string& problem) {
  throw CacheError(path.string() + ": " + problem);
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

// "choices-0123….json" with whatever suffix.
bool has_our_name(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::size_t kStem = kPrefix.size() + 32;
  return name.starts_with(kPrefix) && name.size() > kStem &&
         name.substr(kStem).starts_with(".json") &&
         is_fingerprint(std::string_view(name).substr(kPrefix.size(), 32));
}

bool is_choices_file(const fs::path& path) {
  return has_our_name(path) && path.extension() == ".json";
}

bool is_program_file(const fs::path& path) {
  return path.extension() == ".bin" && is_fingerprint(path.stem().string());
}

std::uint64_t size_of_file(const fs::path& path) {
  const auto stamp = stamp_of(path);
  return stamp ? stamp->size : 0;
}

ChoicesDocument read_document(const fs::path& path, Trust trust, Checks checks) {
  const FileContent content = read_file(path, kMaxChoicesBytes, trust);
  ChoicesDocument document;
  if (!content.problem.empty()) {
    document.problem = content.problem;
    return document;
  }
  return parse_choices(content.bytes, checks);
}

// For callers who can do nothing with half of it.
ChoicesDocument read_whole(const fs::path& path, Trust trust, Checks checks) {
  ChoicesDocument document = read_document(path, trust, checks);
  if (!document.problem.empty()) fail(path, document.problem);
  if (document.bad_entries != 0) fail(path, document.entry_problem);
  return document;
}

CacheFile inspect_choices(const fs::path& path) {
  CacheFile file{.path = path, .kind = "choices", .bytes = size_of_file(path)};
  const ChoicesDocument document = read_document(path, Trust::kOurs, Checks::kRequired);
  file.problem = document.problem;
  for (const DeviceChoices& choices : document.devices) {
    file.device = summary(choices.device);
    file.entries += choices.entries.size();
    if (path != choices_path(path.parent_path(), choices.fingerprint)) {
      file.problem = "it belongs to another device";
    }
  }
  if (file.problem.empty() && document.bad_entries != 0) {
    file.problem = std::to_string(document.bad_entries) + " bad entries; " + document.entry_problem;
  }
  return file;
}

}  // namespace

std::vector<CacheFile> inspect(const fs::path& directory) {
  std::vector<CacheFile> files;
  for (const fs::path& path : files_in(directory)) {
    if (is_choices_file(path)) {
      files.push_back(inspect_choices(path));
    } else if (has_our_name(path) && path.extension() == kDamaged) {
      files.push_back({.path = path,
                       .kind = "choices",
                       .bytes = size_of_file(path),
                       .problem = "it was damaged and has been put aside"});
    }
  }
  for (const fs::path& path : files_in(directory / "programs")) {
    if (!is_program_file(path)) continue;
    files.push_back({.path = path,
                     .kind = "program",
                     .entries = 1,
                     .bytes = size_of_file(path),
                     .problem = problem_of_program(path)});
  }
  return files;
}

std::map<std::string, Entry> read_choices(const fs::path& file) {
  ChoicesDocument document = read_whole(file, Trust::kNamed, Checks::kOptional);
  std::map<std::string, Entry> all;
  for (DeviceChoices& device : document.devices) all.merge(device.entries);
  return all;
}

void export_choices(const fs::path& directory, const fs::path& target) {
  std::vector<DeviceChoices> devices;
  for (const fs::path& path : files_in(directory)) {
    if (!is_choices_file(path)) continue;
    ChoicesDocument document = read_whole(path, Trust::kOurs, Checks::kRequired);
    std::ranges::move(document.devices, std::back_inserter(devices));
  }
  if (devices.empty()) fail(directory, "there are no choices to export");
  std::error_code error;
  const fs::path absolute = fs::absolute(target, error);
  if (const auto problem = write_file(absolute, print_choices(devices), false)) {
    fail(target, "it can't be written: " + *problem);
  }
  // An export is meant for others.
  fs::permissions(absolute, fs::perms::group_read | fs::perms::others_read, fs::perm_options::add,
                  error);
}

std::size_t import_choices(const fs::path& directory, const fs::path& source) {
  const ChoicesDocument document = read_whole(source, Trust::kNamed, Checks::kOptional);
  if (const auto problem = make_private_directory(directory)) fail(directory, *problem);
  std::size_t imported = 0;
  for (const DeviceChoices& choices : document.devices) {
    const fs::path file = choices_path(directory, choices.fingerprint);
    const MergeResult result = merge_choices(file, [&] { return choices; });
    if (result.outcome != Merge::kWritten) fail(file, result.problem);
    imported += choices.entries.size();
  }
  return imported;
}

std::size_t clear(const fs::path& directory) {
  std::size_t removed = 0;
  std::error_code error;
  const auto remove = [&](const fs::path& path) { removed += fs::remove(path, error) ? 1 : 0; };
  for (const fs::path& path : files_in(directory)) {
    // A lock file that is removed while somebody waits for it would let two writers in.
    if (!has_our_name(path) || path.extension() == ".lock") continue;
    const fs::path file =
        path.parent_path() / path.filename().string().substr(0, kPrefix.size() + 32 + 5);
    // A writer that is at it would bring the old entries back. One that hangs shall not stop us.
    const FileLock lock(lock_path(file), std::chrono::milliseconds(100));
    remove(path);
  }
  for (const fs::path& path : files_in(directory / "programs")) {
    if (is_program_file(path) || is_temporary(path)) remove(path);
  }
  return removed;
}

}  // namespace tessera::selection
