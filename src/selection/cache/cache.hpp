// SPDX-License-Identifier: Apache-2.0
// Where choices and compiled programs are remembered. Damage, foreign files and newer formats are
// misses, never errors.
#pragma once

#include <chrono>
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

#include "base/system/environment.hpp"
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
// The same of a directory that may be missing, and then is not created.
CacheDirectory find_cache_directory(const std::optional<std::string>& option, bool use_environment);

// One JSON file per device: <directory>/choices-<fingerprint>.json. Reads lazily and again when the
// file changed, without a lock; writes merge with what other processes wrote, under <file>.lock, by
// unique temporary file and rename. A writer that does not get the lock within 100 ms gives up; its
// entry is written with the next one, or when the cache is closed. Neither find() nor put() throws.
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
  // Writes what is not on the disk yet, and waits this long for the lock. Returns why it can't.
  std::optional<std::string> keep(std::chrono::milliseconds patience);
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
// Whether anybody has tuned on such a device: without that, choices are defaults.
bool is_in_shipped_database(const DeviceProfile& profile);

// Compiled programs: one file per key under <directory>/programs, each with a header (magic,
// format, sizes, full key, XXH3-128 of everything) that is checked before a driver sees a byte. The
// hash finds damage; against other users the store relies on the ownership of directory and file.
// Keeps the cache below `limit` bytes, see trim_cache().
class FileBlobStore final : public device::BlobStore {
 public:
  explicit FileBlobStore(const std::filesystem::path& directory,
                         std::uint64_t limit = kDefaultCacheLimit);
  ~FileBlobStore() override;
  FileBlobStore(const FileBlobStore&) = delete;
  FileBlobStore& operator=(const FileBlobStore&) = delete;
  std::vector<std::byte> get(std::string_view key) override;
  void put(std::string_view key, std::span<const std::byte> blob) override;

 private:
  void make_room(std::uint64_t added);
  void trim();

  std::filesystem::path cache_, directory_;
  std::uint64_t limit_;
  std::once_flag swept_;
  std::mutex mutex_;                     // of what follows
  std::optional<std::uint64_t> room_{};  // bytes that may be added before the next look
  int since_look_ = 0;
};

// ---- what `tessera cache` does
// ---------------------------------------------------------------------------------------

struct CacheFile {
  std::filesystem::path path{};
  std::string kind{};    // "choices", "program"
  std::string device{};  // as written in the file
  std::size_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hits = 0;        // times that a program was loaded
  std::int64_t last_use_ns = 0;  // since 1970: when it was last loaded, or changed
  std::string problem{};         // empty = sound
};
std::vector<CacheFile> inspect(const std::filesystem::path& directory);
// Keys and entries of one choices file. Throws CacheError saying what is wrong with it.
std::map<std::string, Entry> read_choices(const std::filesystem::path& file);
void export_choices(const std::filesystem::path& directory,
                    const std::filesystem::path& target);  // throws CacheError
std::size_t import_choices(const std::filesystem::path& directory,
                           const std::filesystem::path& source);  // likewise
// Removes the files that Tessera wrote, lock files excepted.
struct Cleared {
  std::size_t removed = 0;
  std::vector<CacheFile> left{};  // files with names of ours that may be somebody else's, and why
};
Cleared clear(const std::filesystem::path& directory);

}  // namespace tessera::selection
