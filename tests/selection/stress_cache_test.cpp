// SPDX-License-Identifier: Apache-2.0
// Eight processes write the same files while some of them are killed. An entry whose writing was
// reported is never lost and never goes back to an older value, and whoever reads at any moment
// reads a whole file.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>

#include "selection/cache/cache.hpp"
#include "selection/cache/choices_store.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "support/temporary_directory.hpp"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using selection::Entry;
using selection::PersistentCache;

constexpr int kWriters = 8;
constexpr int kKeys = 6;  // of each writer
// Whichever is reached first; a machine under load gets through less.
constexpr std::size_t kKills = 400;
constexpr auto kDuration = std::chrono::seconds(15);
const std::string kFingerprint = "00112233445566778899aabbccddeeff";

// Survives the processes that write to it.
struct Shared {
  // The last value of each key that was reported as written. 0 = none.
  std::atomic<std::uint32_t> acknowledged[kWriters][kKeys];
  std::atomic<std::uint32_t> written, skipped, lost, torn, wrong_blob, blobs_read;
};

std::string key_of(int writer, int key) {
  return "op|writer=" + std::to_string(writer) + ";key=" + std::to_string(key);
}

// Counts entries that are missing or older than `known`, which was taken before the read.
std::uint32_t count_lost(PersistentCache& cache, const Shared& shared, int writer) {
  std::uint32_t lost = 0;
  for (int key = 0; key < kKeys; ++key) {
    const std::uint32_t known = shared.acknowledged[writer][key];
    if (known == 0) continue;
    const auto found = cache.find(key_of(writer, key));
    if (!found || found->milliseconds < known) ++lost;
  }
  return lost;
}

[[noreturn]] void write_until_killed(const std::filesystem::path& directory,
                                     const DeviceProfile& profile, Shared& shared, int writer,
                                     unsigned seed) {
  PersistentCache cache(directory, kFingerprint, profile);
  selection::FileBlobStore blobs(directory);
  std::mt19937 random(seed);
  while (true) {
    const int key = static_cast<int>(random() % kKeys);
    const std::uint32_t next = shared.acknowledged[writer][key] + 1;
    const auto before = cache.counters();
    cache.put(key_of(writer, key), testing::tuned("tile", {{"WG_X", next}}, next));
    const auto after = cache.counters();
    if (after.written > before.written) {
      shared.acknowledged[writer][key] = next;
      ++shared.written;
    }
    shared.skipped += static_cast<std::uint32_t>(after.skipped - before.skipped);
    // A killed predecessor may have written more than it could report; never less.
    shared.lost += count_lost(cache, shared, static_cast<int>(random() % kWriters));

    const std::string blob_key = "blob " + std::to_string(random() % 4);
    std::vector<std::byte> blob(20000 + random() % 3, static_cast<std::byte>(blob_key.back()));
    blobs.put(blob_key, blob);
    const auto got = blobs.get(blob_key);
    for (const std::byte value : got) {
      if (value != blob.front()) ++shared.wrong_blob;
    }
    if (!got.empty()) ++shared.blobs_read;
  }
}

TEST(StressPersistentCache, EightProcessesAndSigkill) {
  const testing::TemporaryDirectory directory;
  const DeviceProfile profile = testing::load_profile("pocl_cpu");
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *new (memory) Shared{};
  const auto file = selection::choices_path(directory.path(), kFingerprint);

  std::mt19937 random(7);
  const auto start = [&](int writer) {
    const pid_t child = ::fork();
    if (child == 0)
      write_until_killed(directory.path(), profile, shared, writer,
                         static_cast<unsigned>(random()));
    return child;
  };
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    random();
    children.push_back(start(writer));
    ASSERT_GT(children.back(), 0);
  }
  std::size_t kills = 0, reads = 0;
  for (const auto end = Clock::now() + kDuration; kills < kKills && Clock::now() < end;) {
    ::usleep(static_cast<useconds_t>(random() % 8000));
    const auto victim = static_cast<std::size_t>(random() % kWriters);
    ASSERT_EQ(::kill(children[victim], SIGKILL), 0);
    ASSERT_EQ(::waitpid(children[victim], nullptr, 0), children[victim]);
    ++kills;
    children[victim] = start(static_cast<int>(victim));
    // A fresh look at the file at a random moment.
    const auto stored = selection::load_choices(file, kFingerprint);
    ++reads;
    if (stored.exists && (!stored.problem.empty() || stored.bad_entries != 0)) {
      ++shared.torn;
      ADD_FAILURE() << stored.problem;
    }
    PersistentCache cache(directory.path(), kFingerprint, profile);
    shared.lost += count_lost(cache, shared, static_cast<int>(victim));
  }
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  PersistentCache last(directory.path(), kFingerprint, profile);
  for (int writer = 0; writer < kWriters; ++writer) shared.lost += count_lost(last, shared, writer);

  EXPECT_EQ(shared.lost, 0U);
  EXPECT_EQ(shared.torn, 0U);
  EXPECT_EQ(shared.wrong_blob, 0U);
  EXPECT_GT(shared.written, 20U);
  EXPECT_GT(shared.blobs_read, 20U);
  EXPECT_GT(kills, 20U);
  // The lock of a killed writer is free, and its leftovers go with the next write.
  last.put("op|last", testing::tuned("tile", {{"WG_X", 1}}));
  EXPECT_EQ(last.counters().written, 1U);
  std::size_t leftovers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    leftovers += selection::temporary_of(entry.path().filename().string()).empty() ? 0 : 1;
  }
  EXPECT_EQ(leftovers, 0U);
  std::cout << kills << " kills, " << shared.written << " writes reported, " << shared.skipped
            << " skipped for the lock, " << reads << " looks, " << shared.blobs_read
            << " programs read\n";
  ::munmap(memory, sizeof(Shared));
}

}  // namespace
}  // namespace tessera
