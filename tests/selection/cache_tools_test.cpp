// SPDX-License-Identifier: Apache-2.0
// What `tessera cache` does: unlike the caches themselves it says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "selection/cache/choices_file.hpp"
#include "support/persistent_fixture.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::read;
using testing::same;
using testing::write;

class CacheToolsTest : public testing::PersistentCacheFixture {
 protected:
  template <class Work>
  static std::string error_of(Work work) {
    try {
      work();
    } catch (const CacheError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  void put_program() {
    const std::vector<std::byte> blob(100, std::byte{7});
    selection::FileBlobStore(directory.path()).put("key", blob);
  }

  testing::TemporaryDirectory other;
  fs::path target = other.path() / "tuned.json";
};

TEST_F(CacheToolsTest, InspectListsWhatIsThere) {
  EXPECT_TRUE(selection::inspect(directory.path()).empty());
  EXPECT_TRUE(selection::inspect(directory.path() / "missing").empty());
  sound_file();
  put_program();
  write(directory.path() / "unrelated.txt", "x");
  const auto files = selection::inspect(directory.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].kind, "choices");
  EXPECT_EQ(files[0].entries, 2U);
  EXPECT_EQ(files[0].problem, "");
  EXPECT_EQ(files[0].bytes, fs::file_size(file));
  EXPECT_THAT(files[0].device, HasSubstr("[opencl] cpu  pthread-skylake"));
  EXPECT_EQ(files[1].kind, "program");
  EXPECT_EQ(files[1].problem, "");
}

TEST_F(CacheToolsTest, InspectSaysWhatIsWrong) {
  std::string text = sound_file();
  put_program();
  const auto problem = [&](std::size_t place) {
    return selection::inspect(directory.path()).at(place).problem;
  };
  write(file, text.substr(0, 100));
  EXPECT_EQ(problem(0), "it is no JSON");
  std::string bad = text;
  bad.replace(bad.find("12.5"), 4, "12.6");
  write(file, bad);
  EXPECT_EQ(problem(0), "1 bad entries; the entry 'b' is damaged");
  bad = text;
  bad.replace(bad.find("\"version\": 2"), 12, "\"version\": 7");
  write(file, bad);
  EXPECT_THAT(problem(0), HasSubstr("format 7"));
  write(file, text);
  fs::rename(file, selection::choices_path(directory.path(), std::string(32, 'a')));
  EXPECT_EQ(problem(0), "it belongs to another device");
  for (const auto& program : fs::directory_iterator(directory.path() / "programs"))
    write(program.path(), "rubbish");
  EXPECT_EQ(problem(1), "it is too short");
}

TEST_F(CacheToolsTest, ReadChoices) {
  const std::string text = sound_file();
  const auto entries = selection::read_choices(file);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_TRUE(same(entries.at("a"), first));
  EXPECT_THAT(error_of([&] { selection::read_choices(directory.path() / "none.json"); }),
              HasSubstr("none.json: open"));
  EXPECT_THAT(error_of([&] { selection::read_choices(directory.path()); }),
              HasSubstr("no regular file"));
  write(file, "{}");
  EXPECT_THAT(error_of([&] { selection::read_choices(file); }), HasSubstr("no choices of Tessera"));
}

TEST_F(CacheToolsTest, ExportAndImport) {
  EXPECT_THAT(error_of([&] { selection::export_choices(directory.path(), target); }),
              HasSubstr("no choices to export"));
  sound_file();
  const DeviceProfile lavapipe = testing::load_profile("lavapipe");
  selection::PersistentCache second_device(directory.path(), std::string(32, 'b'), lavapipe);
  second_device.put("a", second);
  selection::export_choices(directory.path(), target);
  const std::string exported = read(target);
  EXPECT_THAT(exported, HasSubstr("llvmpipe (LLVM 15.0.6, 256 bits)"));
  EXPECT_THAT(exported, ::testing::Not(HasSubstr(lavapipe.uuid)))
      << "an export names the kind of device, not the device";

  const fs::path empty = other.path() / "cache";
  EXPECT_EQ(selection::import_choices(empty, target), 3U);
  selection::PersistentCache imported(empty, testing::kFingerprint, profile);
  EXPECT_TRUE(same(*imported.find("a"), first));
  EXPECT_TRUE(
      same(*selection::PersistentCache(empty, std::string(32, 'b'), lavapipe).find("a"), second));

  // Into a cache that knows something else already.
  imported.put("mine", second);
  EXPECT_EQ(selection::import_choices(empty, target), 3U);
  EXPECT_TRUE(imported.find("mine") && imported.find("b"));
}

TEST_F(CacheToolsTest, ImportTakesHandWrittenEntriesButNoDamagedOnes) {
  std::string text = sound_file();
  const fs::path empty = other.path() / "cache";
  std::string changed = text;
  changed.replace(changed.find("12.5"), 4, "12.6");
  write(target, changed);
  EXPECT_THAT(error_of([&] { selection::import_choices(empty, target); }),
              HasSubstr("the entry 'b' is damaged"));
  EXPECT_FALSE(fs::exists(empty)) << "nothing or everything";
  // A person who edits an entry takes its check away.
  const std::size_t check = changed.rfind(",\"check\"");
  changed.erase(check, changed.find('}', check) - check);
  write(target, changed);
  EXPECT_EQ(selection::import_choices(empty, target), 2U);
  EXPECT_EQ(
      selection::PersistentCache(empty, testing::kFingerprint, profile).find("b")->milliseconds,
      12.6);
}

TEST_F(CacheToolsTest, ImportCannotLeaveTheDirectory) {
  std::string text = sound_file();
  text.replace(text.find(testing::kFingerprint), 32, "../../../../../../tmp/xxxxxxxxxx");
  write(target, text);
  EXPECT_THAT(error_of([&] { selection::import_choices(other.path() / "cache", target); }),
              HasSubstr("no fingerprint"));
}

TEST_F(CacheToolsTest, ClearRemovesOursAndNothingElse) {
  sound_file();
  put_program();
  write(aside, "x");
  write(file.string() + ".tmp.1.2.3", R"({"format": "tessera-choices", "ver)");
  write(directory.path() / "unrelated.txt", "x");
  write(directory.path() / "choices-mine.json", "x");
  write(directory.path() / "programs" / "notes.txt", "x");
  EXPECT_EQ(selection::clear(directory.path()).removed, 4U);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(directory.path() / "unrelated.txt"));
  EXPECT_TRUE(fs::exists(directory.path() / "choices-mine.json"));
  EXPECT_TRUE(fs::exists(directory.path() / "programs" / "notes.txt"));
  EXPECT_TRUE(selection::inspect(directory.path()).empty());
  EXPECT_EQ(selection::clear(directory.path()).removed, 0U);
  sound_file();
}

}  // namespace
}  // namespace tessera
