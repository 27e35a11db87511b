// SPDX-License-Identifier: Apache-2.0
#include "selection/cache/choices_store.hpp"

#include <system_error>
#include <utility>

#include "selection/files/cache_files.hpp"

namespace tessera::selection {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path choices_path(const fs::path& directory, const std::string& fingerprint) {
  return directory / ("choices-" + fingerprint + ".json");
}

fs::path lock_path(const fs::path& file) { return file.string() + ".lock"; }

StoredChoices load_choices(const fs::path& file, const std::string& fingerprint) {
  StoredChoices stored;
  const FileContent content = read_file(file, kMaxChoicesBytes, Trust::kOurs);
  stored.exists = content.exists;
  stored.stamp = content.stamp;
  stored.problem = content.problem;
  if (!stored.problem.empty()) return stored;
  ChoicesDocument document = parse_choices(content.bytes, Checks::kRequired);
  stored.newer = document.newer;
  stored.problem = document.problem;
  stored.bad_entries = document.bad_entries;
  if (!stored.problem.empty()) return stored;
  if (document.devices.size() != 1 || document.devices.front().fingerprint != fingerprint) {
    stored.problem = "it belongs to another device";
    return stored;
  }
  stored.entries = std::move(document.devices.front().entries);
  return stored;
}

MergeResult merge_choices(const fs::path& file, std::chrono::milliseconds patience,
                          const std::function<DeviceChoices()>& collect) {
  const FileLock lock(lock_path(file), patience);
  if (!lock) return {.outcome = Merge::kLocked, .problem = lock.problem()};
  DeviceChoices merged = collect();
  if (merged.entries.empty()) return {.outcome = Merge::kWritten};
  const StoredChoices stored = load_choices(file, merged.fingerprint);
  if (stored.newer) return {.problem = stored.problem};
  merged.entries.insert(stored.entries.begin(), stored.entries.end());
  const std::string text = print_choices({merged});
  if (text.size() > kMaxChoicesBytes) return {.problem = "the file would grow too large"};

  remove_leftovers(file);
  if (stored.exists && !stored.problem.empty()) {
    std::error_code error;
    fs::rename(file, file.string() + std::string(kDamagedSuffix), error);
    if (error) return {.problem = "the damaged file can't be put aside: " + error.message()};
  }
  if (const auto problem = write_file(file, text, true)) return {.problem = *problem};
  return {.outcome = Merge::kWritten};
}

}  // namespace tessera::selection
