// SPDX-License-Identifier: Apache-2.0
// Launches in parts: which ones a limit makes, and that they give what the whole does.
#include "runtime/dispatch_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "device/counts.hpp"
#include "runtime/context_state.hpp"
#include "tessera/tessera.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using ::testing::Le;
using ::testing::SizeIs;

// A device on which each work-group along y takes as long as it is asked to.
class Notebook final : public device::Stream {
 public:
  void upload(device::Buffer&, std::uint64_t, std::span<const std::byte>) override {}
  void download(const device::Buffer&, std::uint64_t, std::span<std::byte>) override {}
  void copy(const device::Buffer&, std::uint64_t, device::Buffer&, std::uint64_t,
            std::uint64_t) override {}
  void fill(device::Buffer&, std::uint64_t, std::uint64_t, std::uint8_t) override {}
  void flush() override {}
  void synchronize() override {}
  void launch(const device::Launch& launch) override {
    const device::Part& part = launch.part;
    const std::uint32_t count = part.count == 0 ? launch.groups.y : part.count;
    if (part.count != 0) {
      EXPECT_EQ(part.axis, 1U);
    }
    for (std::uint32_t n = 0; n < count; ++n) ++done.at(part.first + n);
    took.push_back(seconds_each * count);
  }
  double time(const std::function<void()>& work) override {
    ++waits;
    work();
    return took.back();
  }

  double seconds_each = 0;
  std::vector<int> done;
  std::vector<double> took;
  int waits = 0;
};

struct Asked {
  std::vector<double> took;
  int waits;
};

Asked launch(runtime::DispatchLimit& limit, double seconds_each, bool may_measure = true) {
  Notebook stream;
  stream.seconds_each = seconds_each;
  stream.done.assign(1000, 0);
  const std::array<std::byte, 4> arguments{};
  limit.launch(stream,
               {.program = nullptr,
                .buffers = {},
                .arguments = arguments,
                .groups = {7, 1000, 3},
                .group = {64, 1, 1}},
               arguments, may_measure);
  EXPECT_THAT(stream.done, Each(1));
  return {stream.took, stream.waits};
}

// One that only counts, for grids that no list holds.
class Counter final : public device::Stream {
 public:
  void upload(device::Buffer&, std::uint64_t, std::span<const std::byte>) override {}
  void download(const device::Buffer&, std::uint64_t, std::span<std::byte>) override {}
  void copy(const device::Buffer&, std::uint64_t, device::Buffer&, std::uint64_t,
            std::uint64_t) override {}
  void fill(device::Buffer&, std::uint64_t, std::uint64_t, std::uint8_t) override {}
  void flush() override {}
  void synchronize() override {}
  void launch(const device::Launch& launch) override {
    ASSERT_EQ(launch.part.first, done) << "a part does not begin where the one before ended";
    if (done == launch.groups.x) throw InvalidArgument("a part follows the last one");
    done += launch.part.count;
    last = launch.part.count;
  }
  double time(const std::function<void()>& work) override {
    work();
    return 1e-9 * static_cast<double>(last);
  }

  std::uint64_t done = 0;
  std::uint32_t last = 0;
};

TEST(DispatchLimit, PartsEndWhereTheLargestGridDoes) {
  runtime::DispatchLimit limit;
  limit.set(3, 1);  // three quarters of the grid
  const std::array<std::byte, 4> arguments{};
  const Dim3 grid{std::numeric_limits<std::uint32_t>::max(), 1, 1};
  for (const char* call : {"measured", "known"}) {
    Counter stream;
    limit.launch(stream,
                 {.program = nullptr,
                  .buffers = {},
                  .arguments = arguments,
                  .groups = grid,
                  .group = {64, 1, 1}},
                 arguments, true);
    EXPECT_EQ(stream.done, grid.x) << call;
  }
}

TEST(DispatchLimit, MeasuresOnceAndThenCutsWithoutWaiting) {
  runtime::DispatchLimit limit;
  limit.set(0.010, 1);
  EXPECT_TRUE(limit.is_set());
  const Asked first = launch(limit, 0.001);
  EXPECT_THAT(first.took, Each(Le(0.0101)));
  EXPECT_EQ(first.waits, static_cast<int>(first.took.size()));
  const Asked second = launch(limit, 0.001);
  EXPECT_THAT(second.took, Each(Le(0.0101)));
  EXPECT_THAT(second.took, SizeIs(::testing::AllOf(::testing::Ge(100U), Le(112U))));
  EXPECT_EQ(second.waits, 0);
  // Longer parts are allowed from now on: fewer of them.
  limit.set(0.100, 1);
  EXPECT_THAT(launch(limit, 0.001).took, SizeIs(Le(12U)));
}

TEST(DispatchLimit, WhatFitsIsWhole) {
  runtime::DispatchLimit limit;
  limit.set(0.010, 1);
  EXPECT_LE(launch(limit, 1e-9).waits, 5);
  EXPECT_THAT(launch(limit, 1e-9).took, SizeIs(1));
}

TEST(DispatchLimit, WithoutALimitLaunchesOfOlderPlansAreWhole) {
  runtime::DispatchLimit limit;
  limit.set(0.010, 1);
  launch(limit, 0.001);
  limit.set(0, 1);
  const Asked whole = launch(limit, 0.001);
  EXPECT_THAT(whole.took, SizeIs(1));
  EXPECT_EQ(whole.waits, 0);
}

TEST(DispatchLimit, ARecordingIsWholeUntilTheCallWasMeasured) {
  runtime::DispatchLimit limit;
  limit.set(0.010, 1);
  EXPECT_THAT(launch(limit, 0.001, false).took, SizeIs(1));
  launch(limit, 0.001);
  const Asked recorded = launch(limit, 0.001, false);
  EXPECT_THAT(recorded.took, SizeIs(::testing::Ge(100U)));
  EXPECT_EQ(recorded.waits, 0);
}

TEST(DispatchLimit, OneWorkGroupIsTheLeast) {
  runtime::DispatchLimit limit;
  limit.set(1e-6, 1);
  EXPECT_THAT(launch(limit, 0.5).took, SizeIs(1000));
  EXPECT_THAT(launch(limit, 0.5).took, SizeIs(1000));
  // 7 times 21 work-groups, where fewer than 132 leave units idle.
  limit.set(1e-6, 132);
  EXPECT_THAT(launch(limit, 0.5).took, SizeIs(143));
}

TEST(DispatchLimit, NoTimeIsRefused) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(set_max_dispatch_ms(context, wrong), InvalidArgument);
  EXPECT_THROW(set_max_dispatch_ms(Context(), 1), InvalidArgument);
  set_max_dispatch_ms(context, 1);  // nothing to cut, nothing lost
  const Tensor x = context.upload(std::vector<float>{1, 2, 3, 5, 6, 7}, {1, 2, 3});
  EXPECT_THAT(context.download<float>(sequence_mean(context, x)), ::testing::ElementsAre(3, 4, 5));
}

// How many parts the platform's driver was given.
int parts_of(const std::string& platform) {
#if TESSERA_HAVE_OPENCL
  if (platform == "opencl") return testing::opencl_parts();
#endif
#if TESSERA_HAVE_VULKAN
  if (platform == "vulkan") return testing::vulkan_parts();
#endif
  return 0;
}

class DispatchLimitOn : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Platforms, DispatchLimitOn, ::testing::Values("opencl", "vulkan"));

TEST_P(DispatchLimitOn, PartsGiveTheBitsOfTheWhole) {
  const std::string platform = GetParam();
  const auto devices = select_devices(probe_devices(), platform);
  if (devices.empty()) GTEST_SKIP() << "there is no " << platform << " device here";
  const Context context = Context::open(std::to_string(devices.front().index));
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  const auto random = [&](Shape shape) {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(generator);
    return context.upload(values, std::move(shape));
  };
  const Tensor a = random({150, 70}), b = random({70, 90}), q = random({2, 50, 3, 32}),
               x = random({40, 96}), weight = random({96});
  // Strides over the grid, ids and numbers of work-groups, several passes.
  const auto all = [&] {
    std::vector<std::vector<float>> results;
    results.push_back(context.download<float>(matmul(context, a, b)));
    results.push_back(context.download<float>(flash_attention(context, q, q, q, {.causal = true})));
    const Tensors grads = Executor(context).run(
        "rms_norm_backward", {{"input", x}, {"grad_output", x}, {"weight", weight}}, {},
        {"grad_weight"});
    for (const auto& [name, grad] : grads) results.push_back(context.download<float>(grad));
    return results;
  };
  const auto whole = all();
  int before = parts_of(platform);
  EXPECT_EQ(all(), whole);
  EXPECT_EQ(parts_of(platform), before);
  context.state()->set_max_dispatch_seconds(1e-9, 1);
  EXPECT_EQ(all(), whole);
  EXPECT_GE(parts_of(platform), before + 6);
  before = parts_of(platform);
  EXPECT_EQ(all(), whole) << "by times that are known";
  EXPECT_GE(parts_of(platform), before + 6);
  set_max_dispatch_ms(context, 0);
  before = parts_of(platform);
  EXPECT_EQ(all(), whole);
  EXPECT_EQ(parts_of(platform), before);
}

}  // namespace
}  // namespace tessera
