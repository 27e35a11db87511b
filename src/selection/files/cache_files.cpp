// SPDX-License-Identifier: Apache-2.0
#include "selection/files/cache_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <tuple>

#include "selection/cache/choices_file.hpp"
#include "selection/cache/choices_store.hpp"
#include "selection/files/files.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChoicesPrefix = "choices-";
constexpr std::string_view kChoicesSuffix = ".json";
constexpr std::string_view kProgramSuffix = ".bin";
constexpr std::string_view kLockSuffix = ".lock";

// "choices-0123….json", the name up to its end; empty for other names.
std::string_view choices_stem(std::string_view name) {
  constexpr std::size_t kHash = 32;
  const std::size_t whole = kChoicesPrefix.size() + kHash + kChoicesSuffix.size();
  if (name.size() < whole || !name.starts_with(kChoicesPrefix)) return {};
  if (!is_fingerprint(name.substr(kChoicesPrefix.size(), kHash))) return {};
  if (!name.substr(kChoicesPrefix.size() + kHash).starts_with(kChoicesSuffix)) return {};
  return name.substr(0, whole);
}

bool is_program_name(std::string_view name) {
  return name.ends_with(kProgramSuffix) &&
         is_fingerprint(name.substr(0, name.size() - kProgramSuffix.size()));
}

// A file that was being written has less; one that a power cut met may hold zeros.
bool begins_like(std::string_view head, std::string_view ours) {
  return head.find_first_not_of('\0') == std::string_view::npos ||
         head.substr(0, ours.size()) == ours.substr(0, head.size());
}

bool begins_as_ours(const NamedFile& file, std::string_view head) {
  if (file.kind == CacheFileKind::kDamaged) return true;  // nothing in it can be relied on
  const bool program = file.kind == CacheFileKind::kProgram ||
                       (file.kind == CacheFileKind::kTemporary &&
                        is_program_name(temporary_of(file.path.filename().string())));
  return begins_like(head, program ? kProgramMagic : kChoicesHead);
}

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error);
}

}  // namespace

std::optional<CacheFileKind> kind_of_name(std::string_view name) {
  if (is_program_name(name)) return CacheFileKind::kProgram;
  if (const std::string_view stem = choices_stem(name); !stem.empty()) {
    const std::string_view rest = name.substr(stem.size());
    if (rest.empty()) return CacheFileKind::kChoices;
    if (rest == kDamagedSuffix) return CacheFileKind::kDamaged;
    if (rest == kLockSuffix) return CacheFileKind::kLock;
  }
  const std::string_view target = temporary_of(name);
  if (is_program_name(target) || (!target.empty() && choices_stem(target) == target))
    return CacheFileKind::kTemporary;
  return std::nullopt;
}

std::vector<NamedFile> named_files(const fs::path& folder) {
  std::vector<NamedFile> files;
  if (is_link(folder)) return files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto kind = kind_of_name(entry->path().filename().string());
    if (!kind) continue;
    std::error_code gone;
    if (fs::symlink_status(entry->path(), gone).type() != fs::file_type::regular) continue;
    const auto stamp = stamp_of(entry->path());
    if (!stamp) continue;
    files.push_back({.path = entry->path(),
                     .kind = *kind,
                     .bytes = stamp->size,
                     .last_use_ns = stamp->modified_ns});
  }
  std::ranges::sort(files, {}, &NamedFile::path);
  return files;
}

std::optional<std::string> remove_own(const NamedFile& file) {
  const Descriptor folder = open_file(file.path.parent_path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return system_reason("open its folder", errno);
  const std::string name = file.path.filename().string();
  const Descriptor opened(retry([&] {
    return ::openat(folder.get(), name.c_str(),
                    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
  }));
  if (!opened) {
    if (errno == ENOENT) return std::nullopt;  // somebody else was faster
    return errno == ELOOP ? "it is a symbolic link" : system_reason("open", errno);
  }
  struct stat info {};
  if (::fstat(opened.get(), &info) != 0) return system_reason("fstat", errno);
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  std::array<char, 64> head{};
  const auto got = retry([&] { return ::read(opened.get(), head.data(), head.size()); });
  if (got < 0) return system_reason("read", errno);
  if (!begins_as_ours(file, std::string_view(head.data(), static_cast<std::size_t>(got))))
    return "it does not begin like a file that Tessera wrote";
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return system_reason("unlink", errno);
  return std::nullopt;
}

std::uint64_t trim_cache(const fs::path& directory, std::uint64_t limit) {
  const FileLock lock(directory / "trim.lock", std::chrono::milliseconds(0));
  std::vector<NamedFile> files = named_files(directory);
  for (NamedFile& file : named_files(directory / kProgramFolder)) files.push_back(std::move(file));
  std::erase_if(files, [](const NamedFile& file) {
    return file.kind == CacheFileKind::kLock || file.kind == CacheFileKind::kTemporary;
  });
  std::uint64_t total = 0;
  for (const NamedFile& file : files) total += file.bytes;
  if (total <= limit || !lock) return total;
  const auto rank = [](const NamedFile& file) {
    return std::tuple(file.kind == CacheFileKind::kChoices, file.last_use_ns);
  };
  std::ranges::sort(files, {}, rank);
  // A little more than is needed, so that not every new file has us look at all of them.
  const std::uint64_t wanted = limit - limit / 8;
  for (const NamedFile& file : files) {
    if (total <= wanted) break;
    if (file.kind == CacheFileKind::kChoices) {
      if (total <= limit) break;
      const FileLock writers(lock_path(file.path), std::chrono::milliseconds(0));
      if (!writers) continue;
      if (!remove_own(file)) total -= file.bytes;
    } else if (!remove_own(file)) {
      total -= file.bytes;
    }
  }
  return total;
}

}  // namespace tessera::selection
