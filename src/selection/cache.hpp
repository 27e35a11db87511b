// SPDX-License-Identifier: Apache-2.0
// Where choices and compiled programs are remembered. Damage, foreign files and newer formats are
// misses, never errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "kernel/embedded.hpp"
#include "selection/selector.hpp"

namespace tessera::selection {

class MemoryCache final : public EntryStore {
 public:
  std::optional<Entry> find(const std::string& key) override;
  void put(const std::string& key, const Entry& entry) override;
  void clear();

 private:
  std::shared_mutex mutex_;
  std::map<std::string, Entry> entries_;
};

// A stable name for everything that may change which configuration is fast or whether a binary is
// valid: platform, vendor, device, driver and compiler versions, limits, features. 32 hex digits.
// Kernels are no part of it: see Entry::kernels.
std::string fingerprint(const DeviceProfile& profile);

// The user's cache directory: option, TESSERA_CACHE_DIR, $XDG_CACHE_HOME/tessera,
// $HOME/.cache/tessera. Created 0700; a directory that is not ours or that others may write is
// refused. Empty with a reason = no persistent cache.
struct CacheDirectory {
  std::filesystem::path path{};  // empty = none
  std::string why_not{};
};
CacheDirectory open_cache_directory(const std::optional<std::string>& option, bool use_environment);

// One JSON file per device: <directory>/choices-<fingerprint>.json. Reads lazily and again when the
// file changed, without a lock; writes merge with what other processes wrote, under <file>.lock, by
// unique temporary file and rename. A writer that does not get the lock within 100 ms gives up; its
// entry is written with the next one. Neither find() nor put() throws.
class PersistentCache final : public EntryStore {
 public:
  struct Counters {
    std::uint64_t written = 0;     // writes on the disk, with the entries of failed ones before
    std::uint64_t skipped = 0;     // writes given up for want of the lock
    std::uint64_t failed = 0;      // writes that failed for another reason
    std::uint64_t unreadable = 0;  // reads of a damaged, foreign or newer file
  };

  PersistentCache(const std::filesystem::path& directory, std::string fingerprint,
                  const DeviceProfile& profile);
  ~PersistentCache() override;
  std::optional<Entry> find(const std::string& key) override;
  void put(const std::string& key, const Entry& entry) override;
  Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The tuning database that is compiled in from tuning/*.json: entries of the device with this
// profile. Matches the exact fingerprint-relevant names first, then the same device under another
// driver.
std::unique_ptr<EntrySource> shipped_database(const DeviceProfile& profile);
std::unique_ptr<EntrySource> shipped_database(const DeviceProfile& profile,
                                              std::span<const kernel::EmbeddedFile> files);

// Compiled programs: one file per key under <directory>/programs, each with a header (magic,
// format, sizes, full key, XXH3-128 of everything) that is checked before a driver sees a byte. The
// hash finds damage; against other users the store relies on the ownership of directory and file.
class FileBlobStore final : public device::BlobStore {
 public:
  explicit FileBlobStore(const std::filesystem::path& directory);
  std::vector<std::byte> get(std::string_view key) override;
  void put(std::string_view key, std::span<const std::byte> blob) override;

 private:
  std::filesystem::path directory_;
  std::once_flag swept_;
};

// ---- what `tessera cache` does
// ---------------------------------------------------------------------------------------

struct CacheFile {
  std::filesystem::path path{};
  std::string kind{};    // "choices", "program"
  std::string device{};  // as written in the file
  std::size_t entries = 0;
  std::uint64_t bytes = 0;
  std::string problem{};  // empty = sound
};
std::vector<CacheFile> inspect(const std::filesystem::path& directory);
// Keys and entries of one choices file. Throws CacheError saying what is wrong with it.
std::map<std::string, Entry> read_choices(const std::filesystem::path& file);
void export_choices(const std::filesystem::path& directory,
                    const std::filesystem::path& target);  // throws CacheError
std::size_t import_choices(const std::filesystem::path& directory,
                           const std::filesystem::path& source);  // likewise
std::size_t clear(const std::filesystem::path& directory);        // files removed

}  // namespace tessera::selection
