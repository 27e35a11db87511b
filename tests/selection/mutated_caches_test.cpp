// SPDX-License-Identifier: Apache-2.0
// Damaged caches: what was written or a miss, the next write makes it good again, and nothing but
// Tessera's own files is touched.
#include <gtest/gtest.h>

#include <set>

#include "base/hash.hpp"
#include "support/mutations.hpp"
#include "support/persistent_fixture.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::kMutations;
using testing::read;
using testing::same;
using testing::write;

class MutatedCaches : public testing::PersistentCacheFixture {
 protected:
  MutatedCaches() {
    write(outside.path() / "file", "untouched");
    write(directory.path() / "notes.json", "mine");
    fs::create_symlink(outside.path(), directory.path() / "link");
  }
  void expect_foreign_files() {
    ASSERT_EQ(read(outside.path() / "file"), "untouched");
    ASSERT_EQ(read(directory.path() / "notes.json"), "mine");
    ASSERT_TRUE(fs::is_symlink(directory.path() / "link"));
  }

  testing::Mutations mutations;
  testing::TemporaryDirectory outside;
};

TEST_F(MutatedCaches, Choices) {
  const std::string whole = sound_file();
  int found = 0, missed = 0;
  for (int n = 0; n < kMutations; ++n) {
    write(file, mutations.next(whole));
    SCOPED_TRACE("seed " + std::to_string(mutations.seed()));
    {
      selection::PersistentCache cache = open();
      for (const auto& [key, entry] : {std::pair("a", first), std::pair("b", second)}) {
        const auto answer = cache.find(key);
        ++(answer ? found : missed);
        if (answer) {
          ASSERT_TRUE(same(*answer, entry)) << key;
        }
      }
    }
    for (const selection::CacheFile& each : selection::inspect(directory.path()))
      ASSERT_EQ(each.problem.find('\n'), std::string::npos) << each.problem;
    if (n % 8 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_recovery("a mutation"));
    }
    ASSERT_NO_FATAL_FAILURE(expect_foreign_files());
  }
  EXPECT_GT(found, kMutations / 32);
  EXPECT_GT(missed, kMutations / 32);
}

// A file that the user names is taken as a whole or refused with a sentence.
TEST_F(MutatedCaches, Imports) {
  sound_file();
  const fs::path source = outside.path() / "tuned.json", cache = outside.path() / "cache";
  selection::export_choices(directory.path(), source);
  const std::string whole = read(source);
  for (int n = 0; n < kMutations; ++n) {
    write(source, mutations.next(whole));
    SCOPED_TRACE("seed " + std::to_string(mutations.seed()));
    fs::remove_all(cache);
    try {
      ASSERT_LE(selection::import_choices(cache, source), 4U);
    } catch (const CacheError& error) {
      const std::string what = error.what();
      ASSERT_NE(what.find("tuned.json"), std::string::npos) << what;
      for (const char c : what) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << what;
      ASSERT_FALSE(fs::exists(cache)) << "nothing or everything";
    }
    ASSERT_NO_FATAL_FAILURE(expect_foreign_files());
  }
}

TEST_F(MutatedCaches, Programs) {
  const std::string key = "kernel tile|device|-DBLOCK=64";
  const std::vector<std::byte> blob(300, std::byte{7});
  const fs::path program = directory.path() / "programs" / (hash128(key) + ".bin");
  selection::FileBlobStore(directory.path()).put(key, blob);
  const std::string whole = read(program);
  int found = 0;
  for (int n = 0; n < kMutations; ++n) {
    write(program, mutations.next(whole));
    SCOPED_TRACE("seed " + std::to_string(mutations.seed()));
    selection::FileBlobStore store(directory.path());
    const std::vector<std::byte> answer = store.get(key);
    found += answer.empty() ? 0 : 1;
    if (!answer.empty()) {
      ASSERT_EQ(answer, blob);
    }
    store.put(key, blob);
    ASSERT_EQ(store.get(key), blob);
    ASSERT_NO_FATAL_FAILURE(expect_foreign_files());
  }
  EXPECT_LT(found, kMutations / 2);
}

}  // namespace
}  // namespace tessera
