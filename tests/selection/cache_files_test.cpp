// SPDX-License-Identifier: Apache-2.0
// Which files of a cache directory are Tessera's, and which of them go when it is full.
#include "selection/files/cache_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "base/hash.hpp"
#include "support/persistent_fixture.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using selection::CacheFileKind;
using selection::FileBlobStore;
using selection::trim_cache;

const std::string kHash(32, 'a');

TEST(CacheFileNames, AreOursToTheLastLetter) {
  const std::pair<std::string, CacheFileKind> ours[] = {
      {"choices-" + kHash + ".json", CacheFileKind::kChoices},
      {"choices-" + kHash + ".json.damaged", CacheFileKind::kDamaged},
      {"choices-" + kHash + ".json.lock", CacheFileKind::kLock},
      {kHash + ".bin", CacheFileKind::kProgram},
      {kHash + ".bin.tmp.12.3f.0", CacheFileKind::kTemporary},
      {"choices-" + kHash + ".json.tmp.12.3f.0", CacheFileKind::kTemporary}};
  for (const auto& [name, kind] : ours) EXPECT_EQ(selection::kind_of_name(name), kind) << name;
  const std::string others[] = {"notes.tmp.txt",
                                "x.tmp.1.2.3",
                                kHash + ".bin.tmp.",
                                kHash + ".bin.tmp.1.2",
                                kHash + ".bin.tmp.1.2.3.4",
                                kHash + ".bin.tmp.1.2.x",
                                "choices-" + kHash + ".json.bak",
                                "choices-" + kHash + ".json.damaged.tmp.1.2.3",
                                "choices-mine.json",
                                "mine.bin",
                                kHash,
                                ".tmp.1.2.3"};
  for (const std::string& name : others)
    EXPECT_EQ(selection::kind_of_name(name), std::nullopt) << name;
}

class CacheFilesTest : public testing::PersistentCacheFixture {
 protected:
  fs::path programs() const { return directory.path() / "programs"; }
  fs::path program(const std::string& key) const { return programs() / (hash128(key) + ".bin"); }
  void put(const std::string& key, std::uint64_t limit = ~std::uint64_t{0}) {
    const std::vector<std::byte> blob(10'000, std::byte{7});
    FileBlobStore(directory.path(), limit).put(key, blob);
  }
  // As if it was used that long ago.
  void age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  std::uint64_t bytes() const {
    std::uint64_t total = 0;
    for (const auto& file : fs::recursive_directory_iterator(directory.path()))
      if (file.is_regular_file()) total += file.file_size();
    return total;
  }
};

TEST_F(CacheFilesTest, WhatIsUsedLeastRecentlyGoesFirst) {
  sound_file();
  int hours = 10;
  for (const char* key : {"a", "b", "c", "d"}) {
    put(key);
    age(program(key), hours--);
  }
  age(file, 1000);
  EXPECT_FALSE(FileBlobStore(directory.path()).get("a").empty());  // and so it is the newest
  trim_cache(directory.path(), 35'000);
  EXPECT_TRUE(fs::exists(program("a")));
  EXPECT_FALSE(fs::exists(program("b")));
  EXPECT_FALSE(fs::exists(program("c")));
  EXPECT_TRUE(fs::exists(program("d")));
  EXPECT_TRUE(fs::exists(file)) << "tuned choices outlive all programs";
  EXPECT_LE(bytes(), 35'000U);
  trim_cache(directory.path(), 100);
  EXPECT_LE(bytes(), 100U);
}

TEST_F(CacheFilesTest, AStoreKeepsItsLimit) {
  constexpr std::uint64_t kLimit = 50'000;
  FileBlobStore store(directory.path(), kLimit);
  const std::vector<std::byte> blob(10'000, std::byte{7}), large(60'000, std::byte{7});
  for (int i = 0; i < 20; ++i) {
    store.put("key" + std::to_string(i), blob);
    ASSERT_LE(bytes(), kLimit) << i;
  }
  EXPECT_FALSE(store.get("key19").empty());
  store.put("large", large);
  EXPECT_TRUE(store.get("large").empty());
  EXPECT_FALSE(store.get("key19").empty()) << "what can't fit drives nothing out";
}

TEST_F(CacheFilesTest, SeveralProcessesKeepItTogether) {
  constexpr std::uint64_t kLimit = 100'000;
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      {
        const std::vector<std::byte> blob(5'000, std::byte{7});
        FileBlobStore store(directory.path(), kLimit);
        for (int i = 0; i < 50; ++i) {
          const std::string key = std::to_string(child) + "/" + std::to_string(i);
          store.put(key, blob);
          const auto back = store.get(key);  // may be gone, must not be wrong
          if (!back.empty() && back != blob) ::_exit(1);
        }
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  // The last to leave may have found another one tidying up.
  FileBlobStore(directory.path(), kLimit).put("last", std::vector<std::byte>(1, std::byte{1}));
  EXPECT_LE(bytes(), kLimit);
  for (const auto& left : selection::inspect(directory.path())) EXPECT_EQ(left.problem, "");
}

TEST_F(CacheFilesTest, ClearLeavesWhatOthersWrote) {
  testing::TemporaryDirectory other;
  put("a");
  const std::vector<fs::path> theirs = {
      programs() / "notes.tmp.txt",     programs() / "x.tmp.1.2.3",
      programs() / (kHash + ".bin"),    programs() / (kHash + ".bin.tmp.1.2.3"),
      fs::path(file.string() + ".bak"), file};
  for (const fs::path& path : theirs) testing::write(path, "not of Tessera");
  testing::write(other.path() / "precious", "tessprg\n");
  fs::create_symlink(other.path() / "precious", programs() / (std::string(32, 'b') + ".bin"));
  const selection::Cleared cleared = selection::clear(directory.path());
  EXPECT_EQ(cleared.removed, 1U);
  EXPECT_EQ(cleared.left.size(), 3U) << "those with our names";
  for (const fs::path& path : theirs) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(other.path() / "precious"));
}

TEST_F(CacheFilesTest, NothingIsRemovedThroughALinkedFolder) {
  put("a");
  testing::TemporaryDirectory other;
  fs::rename(programs(), other.path() / "elsewhere");
  fs::create_symlink(other.path() / "elsewhere", programs());
  EXPECT_EQ(selection::clear(directory.path()).removed, 0U);
  trim_cache(directory.path(), 0);
  EXPECT_TRUE(fs::exists(program("a")));
}

}  // namespace
}  // namespace tessera
