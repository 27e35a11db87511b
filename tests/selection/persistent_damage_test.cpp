// SPDX-License-Identifier: Apache-2.0
// The file of choices under everything that can happen to a file: each outcome is the entry as it
// was written, or a miss, and the next write makes it good again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "support/persistent_fixture.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using selection::PersistentCache;
using testing::read;
using testing::same;
using testing::write;

class PersistentDamageTest : public testing::PersistentCacheFixture {};

TEST_F(PersistentDamageTest, EveryTruncation) {
  const std::string whole = sound_file();
  std::size_t sound = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(file, whole.substr(0, length));
    PersistentCache cache = open();
    for (const auto& [key, entry] : {std::pair("a", first), std::pair("b", second)}) {
      const auto found = cache.find(key);
      if (!found) continue;
      ++sound;
      ASSERT_TRUE(same(*found, entry)) << "cut to " << length;
    }
  }
  // All that may be missing is the last newline.
  EXPECT_EQ(sound, 2U);
  write(file, whole.substr(0, whole.size() / 2));
  expect_recovery("half a file");
  EXPECT_EQ(read(aside), whole.substr(0, whole.size() / 2)) << "the damaged file is put aside";
}

TEST_F(PersistentDamageTest, EveryBitFlip) {
  const std::string whole = sound_file();
  const int descriptor = ::open(file.c_str(), O_WRONLY);
  ASSERT_GE(descriptor, 0);
  const auto put_byte = [&](std::size_t place, int value) {
    const char byte = static_cast<char>(value);
    ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(place)), 1);
  };
  std::size_t misses = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    put_byte(bit / 8, whole[bit / 8] ^ (1 << (bit % 8)));
    PersistentCache cache = open();
    for (const auto& [key, entry] : {std::pair("a", first), std::pair("b", second)}) {
      const auto found = cache.find(key);
      misses += found ? 0 : 1;
      if (found) {
        ASSERT_TRUE(same(*found, entry)) << "bit " << bit;
      }
    }
    put_byte(bit / 8, whole[bit / 8]);
  }
  ::close(descriptor);
  EXPECT_GT(misses, whole.size());
  EXPECT_TRUE(find("a") && find("b"));
}

TEST_F(PersistentDamageTest, OneBadEntryDoesNotTakeTheOthersAlong) {
  std::string text = sound_file();
  const std::size_t place = text.find("BLOCK_K=96");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, 10, "BLOCK_K=97");
  write(file, text);
  EXPECT_EQ(find("a"), std::nullopt);
  EXPECT_TRUE(find("b"));
  open().put("c", first);
  EXPECT_TRUE(find("b") && find("c"));
  EXPECT_EQ(find("a"), std::nullopt);
}

TEST_F(PersistentDamageTest, ForeignContents) {
  const std::string deep(100000, '[');
  std::string many = "{\"format\":[0";
  for (int i = 0; i < 1100000; ++i) many += ",0";
  const std::string contents[] = {
      "",
      "\n",
      "null",
      "[]",
      "{}",
      "hello",
      std::string(1000, '\0'),
      "{\"format\":\"tessera-choices\"}",
      "{\"format\":\"tessera-choices\",\"version\":\"1\"}",
      "{\"format\":\"tessera-choices\",\"version\":-1}",
      "{\"format\":\"tessera-choices\",\"version\":0,\"devices\":[]}",
      "{\"format\":\"tessera-choices\",\"version\":1,\"devices\":{}}",
      "{\"format\":\"tessera-choices\",\"version\":1,\"devices\":[]}",
      "{\"format\":\"tessera-choices\",\"version\":1,\"devices\":[[]]}",
      "{\"format\":\"tessera-choices\",\"version\":1,\"devices\":[{}]}",
      "{\"format\":\"tessera-choices\",\"version\":1,\"devices\":[{\"fingerprint\":"
      "\"../../../../etc/passwd\",\"device\":{},\"entries\":{}}]}",
      "{\"format\":\"other\",\"version\":1,\"devices\":[]}",
      deep,
      "{\"a\":" + deep,
      many + "]}"};
  for (const std::string& content : contents) {
    write(file, content);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(find("a"), std::nullopt) << content.substr(0, 80);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 1) << content.substr(0, 80);
    expect_recovery(content.substr(0, 80));
  }
}

TEST_F(PersistentDamageTest, FileOfAnotherDevice) {
  sound_file();
  const std::string other(32, 'f');
  fs::rename(file, selection::choices_path(directory.path(), other));
  PersistentCache cache(directory.path(), other, profile);
  EXPECT_EQ(cache.find("a"), std::nullopt);
}

TEST_F(PersistentDamageTest, NewerFormatIsLeftAlone) {
  std::string text = sound_file();
  const std::size_t place = text.find("\"version\": 2");
  text.replace(place, 12, "\"version\": 3");
  write(file, text);
  PersistentCache cache = open();
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.put("c", first);
  EXPECT_EQ(cache.counters().written, 0U);
  EXPECT_EQ(cache.counters().failed, 1U);
  EXPECT_EQ(cache.counters().unreadable, 1U);
  EXPECT_TRUE(cache.find("c")) << "for this process it is known all the same";
  EXPECT_EQ(read(file), text);
  EXPECT_FALSE(fs::exists(aside));
}

// ---- what may stand in place of the file

TEST_F(PersistentDamageTest, DirectoryInsteadOfTheFile) {
  fs::create_directory(file);
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("directory");
  EXPECT_TRUE(fs::is_directory(aside));
}

TEST_F(PersistentDamageTest, FifoInsteadOfTheFile) {
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(find("a"), std::nullopt);  // and does not wait for a writer
  expect_recovery("FIFO");
}

TEST_F(PersistentDamageTest, LinksAreNotFollowed) {
  const std::string text = sound_file();
  const fs::path elsewhere = directory.path() / "elsewhere.json";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("symbolic link");
  EXPECT_EQ(read(elsewhere), text) << "what the link led to is as it was";
  fs::remove(file);
  fs::remove(aside);
  fs::create_symlink(file, file);  // a loop
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("loop");
}

TEST_F(PersistentDamageTest, FileThatOthersMayWrite) {
  sound_file();
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("mode 0666");
}

TEST_F(PersistentDamageTest, FileOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  sound_file();
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("another owner");
}

TEST_F(PersistentDamageTest, HugeSparseFile) {
  write(file, "{");
  std::error_code error;
  fs::resize_file(file, std::uintmax_t{8} << 40, error);
  if (error) GTEST_SKIP() << "the file system takes no such file: " << error.message();
  EXPECT_EQ(find("a"), std::nullopt);
  expect_recovery("8 TiB");
}

TEST_F(PersistentDamageTest, NoDirectory) {
  PersistentCache cache(directory.path() / "missing" / "deeper", testing::kFingerprint, profile);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.put("a", first);
  EXPECT_EQ(cache.counters().written, 0U);
  EXPECT_TRUE(cache.find("a"));
}

TEST_F(PersistentDamageTest, LeftoversOfAKilledWriterAreRemoved) {
  sound_file();
  const fs::path leftover = file.string() + ".tmp.4711.abc.0";
  write(leftover, "half a fi");
  const fs::path foreign = directory.path() / "notes.tmp.txt";
  write(foreign, "mine");
  open().put("c", first);
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_TRUE(fs::exists(foreign));
}

}  // namespace
}  // namespace tessera
