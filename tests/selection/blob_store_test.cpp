// SPDX-License-Identifier: Apache-2.0
// Drivers crash on damaged programs, so a damaged file must never give a single byte.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/hash.hpp"
#include "selection/cache/cache.hpp"
#include "selection/files/blob_file.hpp"
#include "support/temporary_directory.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using selection::FileBlobStore;

std::vector<std::byte> bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

class BlobStoreTest : public ::testing::Test {
 protected:
  BlobStoreTest() {
    store().put(key, blob);
    std::ifstream stream(file, std::ios::binary);
    whole = {std::istreambuf_iterator<char>(stream), {}};
  }
  FileBlobStore store() { return FileBlobStore(directory.path()); }
  std::vector<std::byte> get() { return store().get(key); }
  void write(const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }

  testing::TemporaryDirectory directory;
  std::string key = "kernel tile|device|-DBLOCK=64";
  std::vector<std::byte> blob = bytes(std::string(60, 'x') + "compiled");
  fs::path file = directory.path() / "programs" / (hash128(key) + ".bin");
  std::string whole;
};

TEST_F(BlobStoreTest, GivesBackWhatWasPut) {
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(get(), blob);
  EXPECT_TRUE(store().get("another key").empty());
  EXPECT_TRUE(store().get("").empty());
  store().put(key, bytes("newer"));
  EXPECT_EQ(get(), bytes("newer"));
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(file.parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(BlobStoreTest, LargeAndBinary) {
  std::vector<std::byte> large(3 << 20);
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  store().put("large", large);
  EXPECT_EQ(store().get("large"), large);
}

TEST_F(BlobStoreTest, EveryTruncation) {
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    ASSERT_TRUE(get().empty()) << length;
    ASSERT_FALSE(selection::inspect_program(file).problem.empty());
  }
  write(whole + "x");
  EXPECT_TRUE(get().empty());
  write(whole);
  EXPECT_EQ(get(), blob);
}

TEST_F(BlobStoreTest, EveryBitFlip) {
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    write(flipped);
    // The number of hits changes in place; nothing depends on it.
    constexpr std::size_t kHits = 24 * 8;
    ASSERT_EQ(get().empty(), bit < kHits || bit >= kHits + 64) << bit;
  }
}

TEST_F(BlobStoreTest, HitsAreCountedAndMakeItYoung) {
  EXPECT_EQ(selection::inspect_program(file).hits, 0U);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(100);
  fs::last_write_time(file, old);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(), blob);
  EXPECT_EQ(selection::inspect_program(file).hits, 3U);
  EXPECT_GT(fs::last_write_time(file), old + std::chrono::hours(99));
  EXPECT_TRUE(store().get("another key").empty());
  EXPECT_EQ(selection::inspect_program(file).hits, 3U);
}

TEST_F(BlobStoreTest, ADamagedFileIsReplaced) {
  write("rubbish");
  store().put(key, blob);
  EXPECT_EQ(get(), blob);
}

TEST_F(BlobStoreTest, SoundFileUnderAnotherName) {
  const std::string other = "kernel tile|device|-DBLOCK=32";
  fs::copy_file(file, file.parent_path() / (hash128(other) + ".bin"));
  EXPECT_TRUE(store().get(other).empty()) << "a hash of the key is not the key";
}

TEST_F(BlobStoreTest, NothingFromFilesOrDirectoriesThatOthersMayWrite) {
  ASSERT_EQ(::chmod(file.c_str(), 0622), 0);
  EXPECT_TRUE(get().empty());
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(get(), blob);
  ASSERT_EQ(::chmod(file.parent_path().c_str(), 0777), 0);
  EXPECT_TRUE(get().empty());
  store().put("k", blob);
  EXPECT_FALSE(fs::exists(file.parent_path() / (hash128("k") + ".bin")));
  ASSERT_EQ(::chmod(file.parent_path().c_str(), 0700), 0);
  EXPECT_EQ(get(), blob);
}

TEST_F(BlobStoreTest, NothingFromFilesOfOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  EXPECT_TRUE(get().empty());
}

TEST_F(BlobStoreTest, NothingThroughLinks) {
  const fs::path elsewhere = directory.path() / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_TRUE(get().empty());
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_TRUE(get().empty());
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_TRUE(get().empty());
}

TEST_F(BlobStoreTest, OldLeftoversAreSwept) {
  const fs::path fresh = file.string() + ".tmp.1.a.0", old = file.string() + ".tmp.2.a.0";
  const fs::path theirs = file.parent_path() / "notes.tmp.2.a.0";
  std::ofstream(fresh) << "tessprg\n being written";
  for (const fs::path& path : {old, theirs}) {
    std::ofstream(path) << "tessprg\n left by a killed process";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  store().put(key, blob);
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(theirs));
}

TEST_F(BlobStoreTest, UnusableDirectoryIsSilent) {
  FileBlobStore nowhere("/proc/nowhere");
  nowhere.put(key, blob);
  EXPECT_TRUE(nowhere.get(key).empty());
}

}  // namespace
}  // namespace tessera
