// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include "base/system/log.hpp"
#include "selection/cache/cache.hpp"
#include "selection/cache/choices_store.hpp"

namespace tessera::selection {
namespace {

using std::chrono::system_clock;

// Two versions of a file can have the same stamp if they were written within one tick of the file
// system's clock, and the second was given the inode of one before. So a stamp proves nothing until
// it is this old.
constexpr std::int64_t kRacyNanoseconds = 100'000'000;

// A program that ends keeps nobody waiting for longer; a writer needs milliseconds.
constexpr std::chrono::milliseconds kClosingPatience{1000};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct PersistentCache::State {
  std::filesystem::path file;
  std::string fingerprint;
  DeviceProfile profile;

  std::mutex mutex;  // of what follows; never held while waiting for the lock file
  std::map<std::string, Entry> pending;  // not on the disk yet
  std::map<std::string, Entry> entries;
  std::optional<FileStamp> stamp;  // of the version that `entries` are from
  bool stamp_is_final = false;
  bool loaded = false;
  std::string last_problem;

  std::atomic<std::uint64_t> written = 0, skipped = 0, failed = 0, unreadable = 0;

  // Needs the mutex.
  void refresh() {
    const auto current = stamp_of(file);
    if (loaded && current == stamp && (stamp_is_final || !current)) return;
    loaded = true;
    stamp = current;
    if (!current) {
      entries.clear();
      return;
    }
    const std::int64_t read_at = now_ns();
    StoredChoices stored = load_choices(file, fingerprint);
    entries = std::move(stored.entries);
    stamp = stored.stamp;
    const std::int64_t age = read_at - stored.stamp.modified_ns;
    stamp_is_final = age > kRacyNanoseconds;
    if (stored.bad_entries != 0) {
      complain("has " + std::to_string(stored.bad_entries) +
               " damaged entries, which are not used");
    }
    if (stored.problem.empty()) return;
    unreadable.fetch_add(1);
    complain("is not used: " + stored.problem);
  }

  // Once for each new trouble: a cache must not fill anybody's terminal.
  void complain(const std::string& problem) {
    if (problem == std::exchange(last_problem, problem)) return;
    log(LogLevel::kInfo, "cache file " + file.string() + " " + problem);
  }

  // Returns why the entries are not on the disk, or nothing.
  std::optional<std::string> flush(std::chrono::milliseconds patience) {
    std::map<std::string, Entry> sent;
    const MergeResult result = merge_choices(file, patience, [&] {
      const std::lock_guard lock(mutex);
      sent = pending;
      return DeviceChoices{.fingerprint = fingerprint, .device = profile, .entries = sent};
    });
    const std::lock_guard lock(mutex);
    if (result.outcome != Merge::kWritten) {
      (result.outcome == Merge::kLocked ? skipped : failed).fetch_add(1);
      complain("was not written: " + result.problem);
      return result.problem;
    }
    // Another thread may have put something newer under the same key meanwhile.
    for (const auto& [key, entry] : sent) {
      const auto still = pending.find(key);
      if (still != pending.end() && same_content(still->second, entry)) pending.erase(still);
    }
    loaded = false;
    written.fetch_add(1);
    return std::nullopt;
  }

  bool all_written() {
    const std::lock_guard lock(mutex);
    return pending.empty();
  }

  static bool same_content(const Entry& a, const Entry& b) {
    return a.variant == b.variant && a.config == b.config && a.milliseconds == b.milliseconds &&
           a.error_over_bound == b.error_over_bound && a.date == b.date && a.kernels == b.kernels;
  }
};

PersistentCache::PersistentCache(const std::filesystem::path& directory, std::string fingerprint,
                                 const DeviceProfile& profile)
    : state_(std::make_unique<State>()) {
  state_->file = choices_path(directory, fingerprint);
  state_->fingerprint = std::move(fingerprint);
  state_->profile = profile;
}

PersistentCache::~PersistentCache() { keep(kClosingPatience); }

std::optional<std::string> PersistentCache::keep(std::chrono::milliseconds patience) {
  try {
    return state_->all_written() ? std::nullopt : state_->flush(patience);
  } catch (const std::exception& error) {
    state_->failed.fetch_add(1);
    return error.what();
  }
}

std::optional<Entry> PersistentCache::find(const std::string& key) {
  try {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->pending.find(key); found != state_->pending.end()) {
      return found->second;
    }
    state_->refresh();
    if (const auto found = state_->entries.find(key); found != state_->entries.end()) {
      return found->second;
    }
  } catch (const std::exception& error) {
    log(LogLevel::kInfo, std::string("persistent cache: ") + error.what());
  }
  return std::nullopt;
}

void PersistentCache::put(const std::string& key, const Entry& entry) {
  // Whoever calls, only what was measured reaches the disk.
  if (entry.origin != Tier::kAutotune) return;
  try {
    {
      const std::lock_guard lock(state_->mutex);
      state_->pending.insert_or_assign(key, entry);
    }
    state_->flush(kCallPatience);
  } catch (const std::exception& error) {
    state_->failed.fetch_add(1);
    log(LogLevel::kInfo, std::string("persistent cache: ") + error.what());
  }
}

PersistentCache::Counters PersistentCache::counters() const {
  return {.written = state_->written,
          .skipped = state_->skipped,
          .failed = state_->failed,
          .unreadable = state_->unreadable};
}

}  // namespace tessera::selection
