// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "selection/cache/cache.hpp"
#include "support/temporary_directory.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using selection::open_cache_directory;
using ::testing::HasSubstr;

class CacheDirectoryTest : public ::testing::Test {
 protected:
  static selection::CacheDirectory open(const fs::path& path) {
    return open_cache_directory(path.string(), false);
  }
  static unsigned mode(const fs::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
  }

  testing::TemporaryDirectory directory;
};

TEST_F(CacheDirectoryTest, IsCreatedPrivateWithWhatLeadsToIt) {
  const fs::path path = directory.path() / "a" / "b";
  const auto opened = open(path);
  EXPECT_EQ(opened.path, fs::canonical(path));
  EXPECT_EQ(opened.why_not, "");
  EXPECT_EQ(mode(path), 0700U);
  EXPECT_EQ(mode(path.parent_path()), 0700U);
  EXPECT_EQ(open(path).path, opened.path) << "a second time it is there already";
  EXPECT_EQ(open(path.string() + "/").path, opened.path);
}

TEST_F(CacheDirectoryTest, NoneIsSaidWithAReason) {
  for (const char* none : {"", "off"}) {
    const auto opened = open_cache_directory(none, true);
    EXPECT_TRUE(opened.path.empty());
    EXPECT_THAT(opened.why_not, HasSubstr("switch it off"));
  }
  EXPECT_THAT(open_cache_directory(std::nullopt, false).why_not, HasSubstr("no directory"));
}

TEST_F(CacheDirectoryTest, RefusesWhatOthersMayWriteTo) {
  for (const unsigned bad : {0777U, 0720U, 0702U, 01777U}) {
    ASSERT_EQ(::chmod(directory.path().c_str(), bad), 0);
    const auto opened = open(directory.path());
    EXPECT_TRUE(opened.path.empty()) << std::oct << bad;
    EXPECT_THAT(opened.why_not, HasSubstr("others may write"));
  }
  // Others may look.
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_FALSE(open(directory.path()).path.empty());
}

TEST_F(CacheDirectoryTest, RefusesWhatIsNotOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const fs::path theirs = directory.path() / "theirs", link = directory.path() / "link";
  fs::create_directory(theirs);
  ASSERT_EQ(::chown(theirs.c_str(), 12345, 12345), 0);
  EXPECT_THAT(open(theirs).why_not, HasSubstr("belongs to another user"));
  fs::create_symlink(directory.path(), link);
  ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
  EXPECT_THAT(open(link).why_not, HasSubstr("link belongs to another user"));
}

TEST_F(CacheDirectoryTest, RefusesWhatIsNoDirectory) {
  const fs::path file = directory.path() / "file";
  std::ofstream(file) << "x";
  EXPECT_THAT(open(file).why_not, HasSubstr("no directory"));
  EXPECT_FALSE(open(file / "below").why_not.empty());
  const fs::path dangling = directory.path() / "dangling";
  fs::create_symlink(directory.path() / "nothing", dangling);
  EXPECT_FALSE(open(dangling).why_not.empty());
  EXPECT_FALSE(open("/proc/nowhere").why_not.empty());
}

// Many keep ~/.cache on another disk.
TEST_F(CacheDirectoryTest, OwnLinksAreResolvedOnce) {
  const fs::path real = directory.path() / "real", link = directory.path() / "link";
  fs::create_directory(real);
  fs::permissions(real, fs::perms::owner_all);
  fs::create_symlink(real, link);
  EXPECT_EQ(open(link).path, fs::canonical(real));
  EXPECT_EQ(open(link / "tessera").path, fs::canonical(real) / "tessera");
}

}  // namespace
}  // namespace tessera
