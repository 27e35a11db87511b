// SPDX-License-Identifier: Apache-2.0
#include "base/system/timing.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "device/clock.hpp"
#include "support/waking_device.hpp"
#include "tessera/device.hpp"

namespace tessera {
namespace {

constexpr double kRun = 1e-3;  // at full speed

DeviceProfile gpu() { return {.backend = Backend::kVulkan, .kind = DeviceKind::kDiscreteGpu}; }

TEST(Timing, MedianAndSpread) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(spread_of({5}), 0);
  EXPECT_EQ(spread_of({0, 0}), 0);
  EXPECT_DOUBLE_EQ(spread_of({10, 11, 12, 10, 10, 10, 10, 10, 10, 10, 100}), 0.2);
}

TEST(Timing, ShortRunsAreRepeatedToKeepADeviceBusy) {
  EXPECT_EQ(busy_runs(0), 0) << "nothing is known yet";
  EXPECT_EQ(busy_runs(1e-7), 64);
  EXPECT_EQ(busy_runs(0.3e-4), 33);
  EXPECT_EQ(busy_runs(0.6e-3), 1);
  EXPECT_EQ(busy_runs(1.1e-3), 0);
}

TEST(WarmingUp, WaitsUntilADeviceIsAwake) {
  testing::WakingDevice device;
  EXPECT_NEAR(device.run(kRun) / kRun, 1980.0 / 345, 1e-9);
  device.idle(5);
  const bool settled = warm_up(
      device::warm_up_of(gpu()), [&] { return device.run(kRun); }, [&] { return device.now(); });
  EXPECT_TRUE(settled);
  EXPECT_DOUBLE_EQ(device.run(kRun), kRun);
}

TEST(WarmingUp, SaysWhenTheSpeedDoesNotSettle) {
  double now = 0;
  const auto run = [&] {
    const double seconds = kRun * std::exp(2 * now);  // ever slower
    now += seconds;
    return seconds;
  };
  const WarmUp limits{.window_seconds = 0.05, .least_seconds = 0, .most_seconds = 1};
  EXPECT_FALSE(warm_up(limits, run, [&] { return now; }));
  EXPECT_GE(now, 1);
  EXPECT_LT(now, 1.2);
}

TEST(WarmingUp, OneLongRunIsEnough) {
  double now = 0;
  int runs = 0;
  const auto run = [&] {
    ++runs;
    now += 2;
    return 2.0;
  };
  EXPECT_TRUE(warm_up({.most_seconds = 1}, run, [&] { return now; }));
  EXPECT_EQ(runs, 1);
}

TEST(WarmingUp, AClockThatSaysNothingEndsToo) {
  double now = 0;
  const auto run = [&] {
    now += 1e-3;
    return 0.0;
  };
  EXPECT_TRUE(warm_up({}, run, [&] { return now; }));
}

}  // namespace
}  // namespace tessera
