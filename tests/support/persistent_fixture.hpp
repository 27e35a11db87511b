// SPDX-License-Identifier: Apache-2.0
// A directory with the choices of one device, for the tests of the persistent cache.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "selection/cache/cache.hpp"
#include "selection/cache/choices_store.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "support/temporary_directory.hpp"

namespace tessera::testing {

namespace fs = std::filesystem;

inline const std::string kFingerprint = "0123456789abcdef0123456789abcdef";

inline std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

inline bool same(const selection::Entry& a, const selection::Entry& b) {
  return a.variant == b.variant && a.config == b.config && a.origin == b.origin &&
         a.milliseconds == b.milliseconds && a.error_over_bound == b.error_over_bound &&
         a.date == b.date && a.kernels == b.kernels;
}

class PersistentCacheFixture : public ::testing::Test {
 protected:
  selection::PersistentCache open() { return {directory.path(), kFingerprint, profile}; }
  std::optional<selection::Entry> find(const std::string& key) { return open().find(key); }

  // The file with `first` and `second` under keys "a" and "b".
  std::string sound_file() {
    selection::PersistentCache cache = open();
    cache.put("a", first);
    cache.put("b", second);
    EXPECT_EQ(cache.counters().written, 2U);
    return read(file);
  }
  // Whatever is in place of the file, the next write succeeds and is found.
  void expect_recovery(const std::string& what) {
    selection::PersistentCache cache = open();
    cache.put("new", second);
    ASSERT_EQ(cache.counters().written, 1U) << what;
    const auto found = find("new");
    ASSERT_TRUE(found) << what;
    ASSERT_TRUE(same(*found, second)) << what;
  }

  TemporaryDirectory directory;
  DeviceProfile profile = load_profile("pocl_cpu");
  fs::path file = selection::choices_path(directory.path(), kFingerprint);
  fs::path aside = file.string() + ".damaged";
  selection::Entry first = tuned("tile", {{"BLOCK_K", 96}, {"WG_X", 1}}, 1.0 / 3);
  selection::Entry second = tuned("plain", {{"WG_X", 64}}, 12.5);
};

}  // namespace tessera::testing
