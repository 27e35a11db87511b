// SPDX-License-Identifier: Apache-2.0
// The file of choices under everything that can happen to a file: each outcome is the entry as it
// was written, or a miss, and the next write makes it good again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <thread>

#include "support/persistent_fixture.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using selection::Entry;
using selection::PersistentCache;
using testing::read;
using testing::same;
using testing::write;

class PersistentCacheTest : public testing::PersistentCacheFixture {};

TEST_F(PersistentCacheTest, RemembersAcrossObjects) {
  EXPECT_EQ(find("a"), std::nullopt);
  EXPECT_FALSE(fs::exists(file)) << "reading creates nothing";
  sound_file();
  ASSERT_TRUE(find("a") && find("b"));
  EXPECT_TRUE(same(*find("a"), first));
  EXPECT_TRUE(same(*find("b"), second));
  EXPECT_EQ(find("c"), std::nullopt);
}

TEST_F(PersistentCacheTest, FileIsPrivateReadableAndSaysWhatItIs) {
  const std::string text = sound_file();
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  for (const char* part :
       {"\"format\": \"tessera-choices\"", "\"version\": 1", "\"library\": \"",
        "pthread-skylake-avx512-AMD EPYC", "Portable Computing Language 3.1+debian",
        "BLOCK_K=96,WG_X=1", "\"origin\":\"autotune\""}) {
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  }
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(::testing::HasSubstr(".tmp.")));
  }
}

TEST_F(PersistentCacheTest, OnlyTunedEntriesReachTheDisk) {
  PersistentCache cache = open();
  for (const Tier origin : {Tier::kOverride, Tier::kOverlay, Tier::kHeuristics, Tier::kShipped}) {
    Entry entry = first;
    entry.origin = origin;
    cache.put("a", entry);
  }
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(cache.find("a"), std::nullopt);
}

TEST_F(PersistentCacheTest, MergesWithWhatOthersWrote) {
  PersistentCache mine = open(), theirs = open();
  mine.put("a", first);
  theirs.put("b", second);
  mine.put("c", first);
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_TRUE(mine.find(key)) << key;
    EXPECT_TRUE(theirs.find(key)) << key;
  }
  theirs.put("a", second);
  EXPECT_TRUE(same(*mine.find("a"), second)) << "the later result counts";
}

// Same size, same inode perhaps, same tick of the clock: still not overlooked.
TEST_F(PersistentCacheTest, SeesEveryChangeByAnotherProcess) {
  PersistentCache mine = open(), theirs = open();
  for (int i = 0; i < 200; ++i) {
    Entry entry = first;
    entry.milliseconds = 1 + (i % 7);
    theirs.put("a", entry);
    ASSERT_EQ(mine.find("a")->milliseconds, entry.milliseconds) << i;
  }
}

TEST_F(PersistentCacheTest, StrangeKeysAndValuesSurvive) {
  const std::string keys[] = {"flash_attention|dtype=f16;q=[1,2];\"x\"\\n", "ключ",
                              std::string(4096, 'k'), " "};
  PersistentCache cache = open();
  for (const std::string& key : keys) cache.put(key, first);
  for (const std::string& key : keys) EXPECT_TRUE(find(key)) << key;
  // Not representable: a miss, and no harm to the others.
  Entry bad = first;
  bad.milliseconds = std::numeric_limits<double>::quiet_NaN();
  cache.put("nan", bad);
  cache.put("bad utf-8 \xff", first);
  cache.put(std::string(4097, 'k'), first);
  cache.put("", first);
  EXPECT_EQ(find("nan"), std::nullopt);
  for (const std::string& key : keys) EXPECT_TRUE(find(key)) << key;
}

TEST_F(PersistentCacheTest, DriverStringsNeedNotBeUtf8) {
  profile.name = "GPU \xff\xfe";
  sound_file();
  EXPECT_TRUE(find("a"));
}

// ---- the lock

TEST_F(PersistentCacheTest, AHeldLockCostsATenthOfASecondAtMost) {
  sound_file();
  const int holder = ::open(selection::lock_path(file).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(holder, 0);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  PersistentCache cache = open();
  const auto begin = std::chrono::steady_clock::now();
  cache.put("c", first);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 0.09);
  EXPECT_LT(took.count(), 0.5);
  EXPECT_EQ(cache.counters().skipped, 1U);
  EXPECT_EQ(cache.counters().written, 0U);
  EXPECT_TRUE(cache.find("a")) << "readers need no lock";
  EXPECT_TRUE(cache.find("c"));
  EXPECT_EQ(find("c"), std::nullopt);
  ::close(holder);
  cache.put("d", second);
  EXPECT_TRUE(find("c") && find("d")) << "what was skipped is written with the next entry";
}

TEST_F(PersistentCacheTest, WhatWasSkippedIsWrittenWhenTheCacheIsClosed) {
  const int holder = ::open(selection::lock_path(file).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(holder, 0);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  {
    PersistentCache cache = open();
    cache.put("a", first);
    EXPECT_EQ(cache.counters().skipped, 1U);
    ::close(holder);
  }
  EXPECT_TRUE(find("a"));
}

TEST_F(PersistentCacheTest, KeepWaitsAndSaysWhyNot) {
  const int holder = ::open(selection::lock_path(file).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(holder, 0);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  PersistentCache cache = open();
  EXPECT_EQ(cache.keep(std::chrono::milliseconds(0)), std::nullopt) << "there is nothing to keep";
  cache.put("a", first);
  EXPECT_EQ(cache.keep(std::chrono::milliseconds(20)), "another process held the lock for 20 ms");
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    ::close(holder);
  });
  EXPECT_EQ(cache.keep(selection::kAskedPatience), std::nullopt);
  release.join();
  EXPECT_TRUE(find("a"));
}

TEST_F(PersistentCacheTest, ManyThreadsLoseNothing) {
  PersistentCache shared = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        shared.put("t" + std::to_string(t) + "i" + std::to_string(i), first);
    });
  }
  for (std::thread& thread : threads) thread.join();
  shared.put("last", first);  // brings what was skipped
  EXPECT_EQ(shared.counters().failed, 0U);
  PersistentCache fresh = open();
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(fresh.find("t" + std::to_string(t) + "i" + std::to_string(i)));
  }
}

}  // namespace
}  // namespace tessera
