// SPDX-License-Identifier: Apache-2.0
// Copies, launches and their times, with mapped memory and by way of staging buffers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "device/vulkan_fixture.hpp"
#include "tessera/error.hpp"

namespace tessera::device {
namespace {

class VulkanClock : public Vulkan {};

INSTANTIATE_TEST_SUITE_P(Routes, VulkanWork, ::testing::Values(Route::kMapped, Route::kStaged),
                         [](const auto& info) {
                           return info.param == Route::kMapped ? "Mapped" : "Staged";
                         });

// ---- copies ------------------------------------------------------------------------------------

TEST_P(VulkanWork, CopiesBytesAtAnyOffset) {
  const auto stream = device_->create_stream();
  const BufferPtr a = device_->create_buffer(1001);
  const BufferPtr b = device_->create_buffer(1001);
  std::vector<std::byte> sent(1001), got(1001);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 37 + 11);
  stream->upload(*a, 0, sent);
  stream->fill(*b, 0, 1001, 0);
  stream->copy(*a, 3, *b, 501, 499);
  stream->upload(*b, 7, std::span(sent).subspan(900, 13));
  stream->download(*b, 0, got);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::byte wanted = i >= 501 && i < 1000 ? sent[i - 498]
                             : i >= 7 && i < 20   ? sent[i + 893]
                                                  : std::byte{0};
    ASSERT_EQ(got[i], wanted) << "byte " << i;
  }
  std::vector<std::byte> part(5);
  stream->download(*a, 996, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), sent.begin() + 996));
}

TEST_P(VulkanWork, FillsAnyRange) {
  const auto stream = device_->create_stream();
  const BufferPtr buffer = device_->create_buffer(23);
  std::vector<std::byte> model(23), got(23);
  stream->fill(*buffer, 0, 23, 0);
  std::uint8_t value = 1;
  for (std::uint64_t offset = 0; offset <= 23; ++offset) {
    for (std::uint64_t bytes = 0; offset + bytes <= 23; bytes += 1 + bytes / 5, ++value) {
      stream->fill(*buffer, offset, bytes, value);
      std::memset(model.data() + offset, value, bytes);
      stream->download(*buffer, 0, got);
      ASSERT_EQ(got, model) << offset << " + " << bytes;
    }
  }
}

TEST_P(VulkanWork, TakesBuffersWithoutBytes) {
  const auto stream = device_->create_stream();
  const BufferPtr empty = device_->create_buffer(0);
  EXPECT_EQ(empty->size(), 0U);
  stream->upload(*empty, 0, {});
  stream->fill(*empty, 0, 0, 1);
  stream->copy(*empty, 0, *empty, 0, 0);
  stream->download(*empty, 0, {});
  const ProgramPtr program = device_->build(affine_request({1, 1, 1}, 0), store_);
  launch(*stream, program, {empty, empty, nullptr}, AffineArgs{}, 1, {1, 1, 1});
  stream->synchronize();
}

TEST_P(VulkanWork, RefusesRangesOutsideTheBuffer) {
  const auto stream = device_->create_stream();
  const BufferPtr a = device_->create_buffer(16);
  std::vector<std::byte> bytes(8);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->upload(*a, 9, bytes); }),
              "[9, 9 + 8) of a buffer of 16");
  EXPECT_THROW(stream->download(*a, 17, std::span(bytes).first(0)), InvalidArgument);
  EXPECT_THROW(stream->fill(*a, ~std::uint64_t{0}, 2, 0), InvalidArgument);
  EXPECT_THROW(stream->copy(*a, 8, *a, 0, 9), InvalidArgument);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->copy(*a, 0, *a, 4, 8); }), "overlap");
  stream->copy(*a, 0, *a, 8, 8);
  stream->synchronize();
}

TEST_P(VulkanWork, MovesMoreThanOneStagingBufferHolds) {
  const auto stream = device_->create_stream();
  const Words sent = iota((std::size_t{70} << 20) / 4);
  const BufferPtr a = buffer(*stream, sent);
  const BufferPtr b = buffer(sent.size());
  stream->copy(*a, 0, *b, 0, a->size());
  upload(*stream, a, Words(sent.size(), 5));  // while the copy may be under way
  EXPECT_EQ(download(*stream, b), sent);
  EXPECT_EQ(download(*stream, a), Words(sent.size(), 5));
}

TEST_P(VulkanWork, ManySmallUploadsShareTheStaging) {
  const auto stream = device_->create_stream();
  const BufferPtr target = buffer(1 << 20);
  stream->fill(*target, 0, target->size(),
               0);  // makes the buffer busy: none of the uploads can be direct
  const Words row = iota(1 << 12);
  for (std::uint64_t i = 0; i < 256; ++i) {
    stream->upload(*target, i * row.size() * 4, std::as_bytes(std::span(row)));
  }
  const Words got = download(*stream, target);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i % row.size());
}

// ---- launches ----------------------------------------------------------------------------------

TEST_P(VulkanWork, RunsWithConstantsAndPushedArguments) {
  const auto stream = device_->create_stream();
  const std::uint32_t count = 1000;
  const BufferPtr source = buffer(*stream, iota(count));
  const BufferPtr bias = buffer(*stream, iota(count, 7));
  for (const Dim3 group : {Dim3{1, 1, 1}, Dim3{64, 1, 1}, Dim3{16, 4, 2}}) {
    // Work-groups lie along x, so only lanes along x add up to the index.
    for (const std::uint32_t add : {0U, 123456U}) {
      for (const bool with_bias : {false, true}) {
        const BufferPtr target = buffer(count);
        stream->fill(*target, 0, target->size(), 0xee);
        const ProgramPtr program = device_->build(affine_request(group, add), store_);
        const AffineArgs args{
            .count = count, .shift = 13, .factor = 3, .has_bias = with_bias ? 1U : 0U};
        launch(*stream, program, {source, target, with_bias ? bias : nullptr}, args,
               groups_for(count, group.x), group);
        const Words got = download(*stream, target);
        for (std::uint32_t i = 0; i < count; ++i) {
          ASSERT_EQ(got[i], (i + 13) % count * 3 + add + (with_bias ? i + 7 : 0)) << i;
        }
      }
    }
  }
}

TEST_P(VulkanWork, PassesLargeArgumentsInABuffer) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kRows = 150;
  constexpr std::uint32_t kCount = 128;
  struct Large : TableArgs {
    std::array<std::uint32_t, 512> rest{};
  };
  const ProgramPtr small = device_->build(table_request(), store_);
  const ProgramPtr large = device_->build(table_request(sizeof(Large)), store_);
  const BufferPtr target = buffer(kCount);
  const BufferPtr rows = buffer(kRows * kCount);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    Large args;
    args.count = kCount;
    for (std::uint32_t i = 0; i < args.table.size(); ++i) args.table[i] = row * 1000 + i;
    if (row % 3 == 0) {
      launch(*stream, small, {target}, static_cast<const TableArgs&>(args), 2, {64, 1, 1});
    } else {
      launch(*stream, large, {target}, args, 2, {64, 1, 1});
    }
    stream->copy(*target, 0, *rows, row * target->size(), target->size());
  }
  const Words got = download(*stream, rows);
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i / kCount * 1000 + i % kCount % 40);
}

TEST_P(VulkanWork, TheSameLaunchesAllocateOnce) {
  if (!kFaultsWork) GTEST_SKIP() << "allocations can be counted on Linux only";
  struct Large : TableArgs {
    std::array<std::uint32_t, 512> rest{};
  };
  const auto stream = device_->create_stream();
  const ProgramPtr program = device_->build(table_request(sizeof(Large)), store_);
  const BufferPtr target = buffer(128);
  Large args;
  args.count = 128;
  const auto allocations_of = [&](std::uint32_t launches) {
    const int before = faults.allocations;
    for (std::uint32_t n = 0; n < launches; ++n)
      launch(*stream, program, {target}, args, 2, {64, 1, 1});
    stream->synchronize();
    return faults.allocations - before;
  };
  EXPECT_GT(allocations_of(128), 0);  // all batches, more arguments than fit into one buffer
  EXPECT_EQ(allocations_of(128), 0);
}

TEST_P(VulkanWork, RunsDependentLaunchesInOrder) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 16;
  Words model = iota(kCount);
  BufferPtr from = buffer(*stream, model);
  BufferPtr to = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 1), store_);
  for (std::uint32_t step = 0; step < 100; ++step) {
    // Each element comes from the far end: without a barrier half of them would be stale.
    launch(*stream, program, {from, to, nullptr}, AffineArgs{kCount, kCount / 2 + step, 3, 0},
           kCount / 64, {64, 1, 1});
    Words next(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i)
      next[i] = model[(i + kCount / 2 + step) % kCount] * 3 + 1;
    model.swap(next);
    std::swap(from, to);
    if (step % 41 == 0) stream->flush();
  }
  EXPECT_EQ(download(*stream, from), model);
}

TEST_P(VulkanWork, UploadsDoNotOvertakeLaunches) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr source = buffer(*stream, iota(kCount));
  const BufferPtr first = buffer(kCount), second = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const AffineArgs args{.count = kCount};
  launch(*stream, program, {source, first, nullptr}, args, kCount / 64, {64, 1, 1});
  upload(*stream, source, Words(kCount, 4));
  launch(*stream, program, {source, second, nullptr}, args, kCount / 64, {64, 1, 1});
  stream->flush();
  upload(*stream, source, Words(kCount, 9));
  stream->fill(*source, 0, 4, 0);
  EXPECT_EQ(download(*stream, first), iota(kCount));
  EXPECT_EQ(download(*stream, second), Words(kCount, 4));
  EXPECT_EQ(download(*stream, source)[0], 0U);
  EXPECT_EQ(download(*stream, source)[1], 9U);
}

TEST_P(VulkanWork, KeepsAliveWhatTheDeviceStillUses) {
  auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr target = buffer(kCount);
  {
    const BufferPtr source = buffer(*stream, iota(kCount));
    const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 5), store_);
    launch(*stream, program, {source, target, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
           {64, 1, 1});
  }
  device_.reset();
  EXPECT_EQ(download(*stream, target), iota(kCount, 5));
  stream.reset();  // the buffer is now all that holds the device
}

TEST_P(VulkanWork, DestroyingAStreamFinishesItsWork) {
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr target = buffer(kCount);
  {
    const auto stream = device_->create_stream();
    const BufferPtr source = buffer(*stream, iota(kCount));
    const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 2), store_);
    launch(*stream, program, {source, target, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
           {64, 1, 1});
  }
  EXPECT_EQ(download(*device_->create_stream(), target), iota(kCount, 2));
}

TEST_P(VulkanWork, StreamsOfTwoThreadsDoNotMix) {
  const ProgramPtr affine = device_->build(affine_request({32, 1, 1}, 1), store_);
  const auto run = [&](std::uint32_t seed, Words& result) {
    const auto stream = device_->create_stream();
    const ProgramPtr own = device_->build(affine_request({64, 1, 1}, seed), store_);
    constexpr std::uint32_t kCount = 5000;
    BufferPtr from = buffer(*stream, iota(kCount, seed));
    BufferPtr to = buffer(kCount);
    for (std::uint32_t step = 0; step < 60; ++step) {
      launch(*stream, affine, {from, to, nullptr}, AffineArgs{kCount, 1, 1, 0},
             groups_for(kCount, 32), {32, 1, 1});
      launch(*stream, own, {to, from, nullptr}, AffineArgs{kCount, 0, 1, 0}, groups_for(kCount, 64),
             {64, 1, 1});
      if (step % 7 == 0) stream->synchronize();
    }
    result = download(*stream, from);
  };
  std::array<Words, 2> results;
  std::thread other([&] { run(1000, results[1]); });
  run(10, results[0]);
  other.join();
  for (std::uint32_t t = 0; t < 2; ++t) {
    const std::uint32_t seed = t == 0 ? 10 : 1000;
    ASSERT_EQ(results[t].size(), 5000U);
    for (std::uint32_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(results[t][i], (i + 60) % 5000 + seed + 60 * (1 + seed));
    }
  }
}

TEST_P(VulkanWork, SubgroupsHaveTheProfilesSize) {
  const DeviceProfile& profile = device_->profile();
  if (!has(profile.features, Feature::kSubgroupArithmetic))
    GTEST_SKIP() << "the device has no sub-group arithmetic";
  const auto stream = device_->create_stream();
  ProgramRequest request = affine_request({profile.subgroup_size * 2, 1, 1}, 0);
  request.name = "subgroup";
  request.spirv = subgroup_shader();
  request.bindings = 1;
  request.argument_bytes = 0;
  const ProgramPtr program = device_->build(request, store_);
  const BufferPtr target = buffer(profile.subgroup_size * 6);
  const std::vector<BufferPtr> buffers{target};
  Launch three;
  three.program = program.get();
  three.buffers = buffers;
  three.groups = {3, 1, 1};
  three.group = request.group;
  stream->launch(three);
  EXPECT_EQ(download(*stream, target),
            Words(profile.subgroup_size * 6, profile.subgroup_size * 1001));
  request.group = {profile.max_group_size, 1,
                   1};  // more sub-groups than a required size allows on lavapipe
  EXPECT_NE(device_->build(request, store_), nullptr);
}

// ---- time --------------------------------------------------------------------------------------

TEST_P(VulkanWork, TimesTheLaunches) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 16;
  const BufferPtr a = buffer(*stream, iota(kCount));
  const BufferPtr b = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const auto work = [&](int launches) {
    for (int i = 0; i < launches; ++i) {
      launch(*stream, program, {a, b, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
             {64, 1, 1});
    }
  };
  work(1);
  const auto start = std::chrono::steady_clock::now();
  double few = stream->time([&] { work(2); });
  for (int i = 0; i < 4; ++i)
    few = std::min(few, stream->time([&] { work(2); }));  // on a busy machine
  const double many = stream->time([&] { work(100); });
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(few, 0);
  EXPECT_GT(many, few);
  EXPECT_LT(few + many, wall);
  EXPECT_EQ(stream->time([] {}), 0);
  // Neither what comes before the first launch nor what follows the last one counts.
  const Words large = iota(std::size_t{4} << 20);
  const BufferPtr c = buffer(large.size());
  const double framed = stream->time([&] {
    stream->fill(*c, 0, c->size(), 1);
    upload(*stream, c, large);
    work(2);
    stream->fill(*c, 0, c->size(), 2);
    work(1);
    download(*stream, c);
    upload(*stream, c, large);
  });
  EXPECT_GT(framed, 0);
  EXPECT_THROW(stream->time([] { throw InvalidArgument("from within"); }), InvalidArgument);
  EXPECT_GT(stream->time([&] { work(1); }), 0);
  EXPECT_THROW(stream->time([&] { stream->time([] {}); }), InvalidArgument);
}

TEST_F(VulkanClock, TimesByTheHostsClockWhereTheQueueHasNone) {
  faults.no_clock = true;
  open();
  if (!device_ || !kFaultsWork) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(64);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  EXPECT_GT(stream->time([&] {
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
  }),
            0);
}

}  // namespace
}  // namespace tessera::device
