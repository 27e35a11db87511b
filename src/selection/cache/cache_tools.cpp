// SPDX-License-Identifier: Apache-2.0
// What `tessera cache` does. Unlike the caches themselves, these functions were asked for by name
// and say what failed.
#include <algorithm>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "selection/cache/cache.hpp"
#include "selection/cache/choices_store.hpp"
#include "selection/files/blob_file.hpp"
#include "selection/files/cache_files.hpp"
#include "tessera/error.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& problem) {
  throw CacheError(printable(path.string()) + ": " + problem);
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

CacheFile inspect_choices(const NamedFile& named) {
  CacheFile file{.path = named.path,
                 .kind = "choices",
                 .bytes = named.bytes,
                 .last_use_ns = named.last_use_ns};
  if (named.kind == CacheFileKind::kDamaged) {
    file.problem = "it was damaged and has been put aside";
    return file;
  }
  const ChoicesDocument document = read_document(named.path, Trust::kOurs, Checks::kRequired);
  file.problem = document.problem;
  for (const DeviceChoices& choices : document.devices) {
    file.device = summary(choices.device);
    file.entries += choices.entries.size();
    if (named.path != choices_path(named.path.parent_path(), choices.fingerprint)) {
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
  for (const NamedFile& file : named_files(directory)) {
    if (file.kind == CacheFileKind::kChoices || file.kind == CacheFileKind::kDamaged)
      files.push_back(inspect_choices(file));
  }
  for (const NamedFile& file : named_files(directory / kProgramFolder)) {
    if (file.kind != CacheFileKind::kProgram) continue;
    const ProgramFile program = inspect_program(file.path);
    files.push_back({.path = file.path,
                     .kind = "program",
                     .entries = 1,
                     .bytes = file.bytes,
                     .hits = program.hits,
                     .last_use_ns = file.last_use_ns,
                     .problem = program.problem});
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
  for (const NamedFile& file : named_files(directory)) {
    if (file.kind != CacheFileKind::kChoices) continue;
    ChoicesDocument document = read_whole(file.path, Trust::kOurs, Checks::kRequired);
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
    const MergeResult result = merge_choices(file, kAskedPatience, [&] { return choices; });
    if (result.outcome != Merge::kWritten) fail(file, result.problem);
    imported += choices.entries.size();
  }
  return imported;
}

Cleared clear(const fs::path& directory) {
  Cleared cleared;
  const auto remove = [&](const NamedFile& file) {
    if (const auto why = remove_own(file)) {
      cleared.left.push_back({.path = file.path, .bytes = file.bytes, .problem = *why});
    } else {
      ++cleared.removed;
    }
  };
  for (const NamedFile& file : named_files(directory)) {
    // A lock file that is removed while somebody waits for it would let two writers in.
    if (file.kind == CacheFileKind::kLock) continue;
    const std::string name = file.path.filename().string();
    const std::size_t stem = name.find(".json") + std::string_view(".json").size();
    // A writer that is at it would bring the old entries back. One that hangs shall not stop us.
    const FileLock lock(lock_path(directory / name.substr(0, stem)), kCallPatience);
    remove(file);
  }
  for (const NamedFile& file : named_files(directory / kProgramFolder)) remove(file);
  return cleared;
}

}  // namespace tessera::selection
