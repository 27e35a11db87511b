// SPDX-License-Identifier: Apache-2.0
#include "selection/cache/cache.hpp"

namespace tessera::selection {

std::optional<Entry> MemoryCache::find(const std::string& key) {
  const std::shared_lock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void MemoryCache::put(const std::string& key, const Entry& entry) {
  try {
    const std::lock_guard lock(mutex_);
    entries_.insert_or_assign(key, entry);
  } catch (...) {
    // Out of memory: the choice is made again next time.
  }
}

void MemoryCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace tessera::selection
