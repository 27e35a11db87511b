// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/measure.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tessera/measure/bench_json.hpp"

namespace tessera::tool {
namespace {

constexpr conformance::Peaks kPeaks{.fma_flops = 232e9, .copy_bytes_per_second = 20e9};

Measured measured(const conformance::VerifiedRun& run, const conformance::Peaks& peaks = kPeaks) {
  Measured row;
  row.operation = &find_operation("flash_attention");
  row.run = run;
  row.compare_with(peaks);
  return row;
}

conformance::VerifiedRun one_millisecond(double flops, double bytes) {
  conformance::VerifiedRun run;
  run.median_seconds = 1e-3;
  run.flops = flops;
  run.bytes = bytes;
  return run;
}

// What a reader would make of "147 GFLOP/s" and "84.3 % of 174".
void expect_one_story(const Measured& row) {
  const std::string percent = percent_text(row);
  const double rate = std::strtod(rate_text(row).c_str(), nullptr);
  const double share = std::strtod(percent.c_str(), nullptr);
  const double peak = std::strtod(
      percent.substr(percent.find_first_of("0123456789", percent.find(" of "))).c_str(), nullptr);
  EXPECT_NEAR(100 * rate / peak, share, 0.01 * share) << rate_text(row) << ", " << percent;
}

TEST(Measured, RateAndPercentageAreOfTheSameCalls) {
  // On a machine with neighbours: while the call ran, the unit that multiplies reached 174.
  conformance::VerifiedRun beside = one_millisecond(147e6, 1e3);
  beside.arithmetic_flops = 174.4e9;
  const Measured row = measured(beside);
  EXPECT_EQ(rate_text(row), "147 GFLOP/s");
  EXPECT_EQ(percent_text(row), "84.3 % of 174");
  expect_one_story(row);

  conformance::VerifiedRun alone = beside;
  alone.arithmetic_flops = 0;
  EXPECT_EQ(percent_text(measured(alone)), "63.4 % of 232");
  expect_one_story(measured(alone));

  const conformance::VerifiedRun moves = one_millisecond(1e6, 13e6);
  EXPECT_EQ(rate_text(measured(moves)), "13.0 GB/s");
  EXPECT_EQ(percent_text(measured(moves)), "65.0 % of 20.0");
  expect_one_story(measured(moves));

  conformance::VerifiedRun reads = moves;
  reads.read_bytes_per_second = 16.25e9;
  EXPECT_EQ(percent_text(measured(reads)), "80.0 % of read 16.2");
  expect_one_story(measured(reads));
}

TEST(Measured, NoPeakNoPercentage) {
  const Measured row = measured(one_millisecond(1e6, 0), {});
  EXPECT_EQ(rate_text(row), "1.00 GFLOP/s");
  EXPECT_EQ(percent_text(row), "–");
}

TEST(Measured, UnsteadyResultsAreMarked) {
  Measured row = measured(one_millisecond(1e6, 0));
  row.run.spread = 0.099;
  EXPECT_FALSE(row.unsteady());
  EXPECT_EQ(spread_text(row.run.spread, row.run.settled), "9.9 %");
  EXPECT_EQ(unsteady_note({row}), "");
  Measured varies = row;
  varies.run.spread = 0.14;
  EXPECT_EQ(spread_text(varies.run.spread, varies.run.settled), "14.0 % !");
  EXPECT_EQ(unsteady_note({row, varies}), kUnsteadyNote);
  Measured waking = row;
  waking.run.settled = false;
  EXPECT_EQ(spread_text(waking.run.spread, waking.run.settled), "9.9 % !");
  const Json json = bench_json({}, {row, varies, waking});
  EXPECT_EQ(json["benchmarks"][0]["unsteady"], false);
  EXPECT_EQ(json["benchmarks"][1]["unsteady"], true);
  EXPECT_EQ(json["benchmarks"][2]["unsteady"], true);
  EXPECT_FALSE(json["benchmarks"][0].contains("clock_mhz"));
  row.run.clock_mhz = 1980;
  EXPECT_EQ(bench_json({}, {row})["benchmarks"][0]["clock_mhz"], 1980);
  EXPECT_EQ(clock_text(row.run.clock_mhz), "1980 MHz");
  EXPECT_EQ(clock_text(0), "–");
}

}  // namespace
}  // namespace tessera::tool
