// SPDX-License-Identifier: Apache-2.0
// One device's file of choices on disk: what PersistentCache and the cache tools do to it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "selection/cache/choices_file.hpp"
#include "selection/files/files.hpp"

namespace tessera::selection {

struct StoredChoices {
  std::map<std::string, Entry> entries{};
  std::string problem{};  // why there are none, or nothing
  bool exists = false;
  bool newer = false;  // and so not to be touched
  std::size_t bad_entries = 0;
  FileStamp stamp{};
};

std::filesystem::path choices_path(const std::filesystem::path& directory,
                                   const std::string& fingerprint);
std::filesystem::path lock_path(const std::filesystem::path& file);

// What the file holds for this fingerprint. Needs no lock.
StoredChoices load_choices(const std::filesystem::path& file, const std::string& fingerprint);

enum class Merge { kWritten, kLocked, kFailed };
struct MergeResult {
  Merge outcome = Merge::kFailed;
  std::string problem{};
};
// For a lock that is held by another process. Calls of an application, which can do without it, and
// what the user asked for by name.
inline constexpr std::chrono::milliseconds kCallPatience{100};
inline constexpr std::chrono::milliseconds kAskedPatience{5000};

// Adds to the file, under its lock, what `collect` returns; it is asked when the lock is held, so
// that of two writers the later one has the later entries. A damaged file is put aside as
// <file>.damaged, a newer one left alone.
MergeResult merge_choices(const std::filesystem::path& file, std::chrono::milliseconds patience,
                          const std::function<DeviceChoices()>& collect);

}  // namespace tessera::selection
