// SPDX-License-Identifier: Apache-2.0
// The tuner among planted candidates: whatever is wrong with one, it must not win, and its reason
// must be kept.
#include "selection/tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "support/fake_operation.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using selection::Candidate;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Plant {
  double seconds = 1e-3;
  double error = 0.5;
  std::string build_failure{}, verify_failure{}, launch_failure{};
  int sleep_ms = 0;  // of each run, by the wall clock
  int runs = 0, verified = 0;
  std::vector<double> times{};  // of the first runs, instead of `seconds`
};

class PlantedTrial final : public selection::Trial {
 public:
  explicit PlantedTrial(Plant& plant) : plant_(plant) {}
  double verify() override {
    ++plant_.verified;
    if (!plant_.verify_failure.empty()) throw Error(plant_.verify_failure);
    return plant_.error;
  }
  double time() override {
    EXPECT_EQ(plant_.verified, 1) << "timed before it was known to be right";
    const auto run = static_cast<std::size_t>(plant_.runs++);
    if (!plant_.launch_failure.empty()) throw DeviceError(plant_.launch_failure);
    if (plant_.sleep_ms > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(plant_.sleep_ms));
    return run < plant_.times.size() ? plant_.times[run] : plant_.seconds;
  }

 private:
  Plant& plant_;
};

class TunerTest : public ::testing::Test {
 protected:
  // Candidates are told apart by their work-group size: the place in `plants`, from 1.
  TuneReport tune(selection::TuneOptions options = {}) {
    const Variant* variant = testing::fake_operation().find_variant("plain");
    std::vector<Candidate> candidates;
    for (std::uint32_t i = 1; i <= plants.size(); ++i)
      candidates.push_back({variant, {{"WG_X", i}}});
    return selection::tune(
        testing::fake_problem(64), candidates,
        [&](const Candidate& candidate) -> std::unique_ptr<selection::Trial> {
          Plant& plant = plants.at(candidate.config.at("WG_X") - 1);
          if (plant.build_failure == "null") return nullptr;
          if (plant.build_failure == "int") throw 42;
          if (!plant.build_failure.empty()) throw BuildError(plant.build_failure);
          return std::make_unique<PlantedTrial>(plant);
        },
        options, [&](const Event& event) { events.push_back(event); });
  }
  static std::uint32_t winner(const TuneReport& report) {
    return report.best ? report.best->config.at("WG_X") : 0;
  }

  std::vector<Plant> plants;
  std::vector<Event> events;
};

TEST_F(TunerTest, TheFastestOfTheRightOnesWins) {
  plants = {{.seconds = 3e-3}, {.seconds = 1e-3}, {.seconds = 2e-3}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 2U);
  EXPECT_EQ(report.operation, "scale");
  EXPECT_EQ(report.key, "dtype=f32;n=64");
  EXPECT_EQ(report.best->tier, Tier::kAutotune);
  EXPECT_THAT(report.best->why, HasSubstr("the fastest of 3 right among 3 candidates"));
  EXPECT_DOUBLE_EQ(report.measurements[1].milliseconds, 1);
  EXPECT_EQ(report.measurements[1].error_over_bound, 0.5);
  EXPECT_FALSE(report.out_of_budget);
}

// Each bad one would be by far the fastest.
TEST_F(TunerTest, NoBadCandidateWins) {
  const double fast = 1e-9;
  plants = {
      {.seconds = fast, .error = 1.0001},
      {.seconds = fast, .error = kNan},
      {.seconds = fast, .error = std::numeric_limits<double>::infinity()},
      {.seconds = fast, .error = -1},
      {.seconds = fast, .build_failure = "does not compile"},
      {.seconds = fast, .build_failure = "null"},
      {.seconds = fast, .build_failure = "int"},
      {.seconds = fast, .verify_failure = "two runs gave different bits"},
      {.seconds = fast, .verify_failure = "the kernel wrote outside the elements of y"},
      {.seconds = fast, .launch_failure = "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES"},
      {.times = {fast, kNan}},
      {.times = {-fast}},
      {.times = {fast, fast, std::numeric_limits<double>::infinity()}},
      {.seconds = 5e-3},
      {.seconds = 4e-3},
  };
  const char* reasons[] = {"1 times the bound",
                           "nan times the bound",
                           "inf times",
                           "-1 times",
                           "does not compile",
                           "could not be set up",
                           "no std::exception",
                           "different bits",
                           "wrote outside",
                           "CL_OUT_OF_RESOURCES",
                           "clock gave nan",
                           "clock gave -",
                           "clock gave inf",
                           "",
                           ""};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 15U);
  ASSERT_EQ(report.measurements.size(), plants.size());
  for (std::size_t i = 0; i < plants.size(); ++i) {
    EXPECT_THAT(report.measurements[i].failure, HasSubstr(reasons[i])) << i;
    EXPECT_EQ(report.measurements[i].failure.empty(), i >= 13) << i;
    if (i < 13) {
      EXPECT_EQ(report.measurements[i].milliseconds, 0) << i;
    }
  }
  EXPECT_THAT(report.best->why, HasSubstr("of 2 right among 15"));
}

TEST_F(TunerTest, NothingPassed) {
  plants = {{.error = 2}, {.build_failure = "no"}};
  const TuneReport report = tune();
  EXPECT_FALSE(report.best);
  EXPECT_EQ(report.measurements.size(), 2U);
  plants.clear();
  EXPECT_FALSE(tune().best);
}

// One disturbed run decides nothing, in either direction.
TEST_F(TunerTest, MedianCounts) {
  plants = {{.seconds = 2e-3}, {.seconds = 3e-3, .times = {3e-3, 3e-3, 1e-6, 1e-6, 1e-6}}};
  // Three of seven runs look fast.
  EXPECT_EQ(winner(tune()), 1U);
  plants = {{.seconds = 2e-3}, {.seconds = 1e-3, .times = {9e-3, 1e-3, 9e-3}}};
  EXPECT_EQ(winner(tune()), 2U);
  EXPECT_EQ(plants[1].runs, 7);
}

TEST_F(TunerTest, SlowOnesAreGivenUpAfterTwoRuns) {
  plants = {{.seconds = 1e-3}, {.seconds = 1.6e-3}, {.seconds = 1.4e-3}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 1U);
  EXPECT_EQ(plants[0].runs, 7);
  EXPECT_EQ(plants[1].runs, 2);
  EXPECT_EQ(plants[2].runs, 7);
  EXPECT_TRUE(report.measurements[1].failure.empty()) << "slow is not wrong";
  EXPECT_DOUBLE_EQ(report.measurements[1].milliseconds, 1.6);
}

TEST_F(TunerTest, OrderDoesNotMatter) {
  for (int turn = 0; turn < 4; ++turn) {
    plants = {
        {.seconds = 4e-3}, {.seconds = 2e-3}, {.seconds = 1e-9, .error = 3}, {.seconds = 3e-3}};
    std::rotate(plants.begin(), plants.begin() + turn, plants.end());
    EXPECT_EQ(plants[winner(tune()) - 1].seconds, 2e-3);
  }
}

TEST_F(TunerTest, BudgetEndsTheSearch) {
  plants.assign(50, {.seconds = 1e-3, .sleep_ms = 5});
  const auto begin = std::chrono::steady_clock::now();
  const TuneReport report = tune({.budget_seconds = 0.1});
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_TRUE(report.best);
  EXPECT_LT(took, 1.0);
  EXPECT_GE(report.seconds, 0.1);
  EXPECT_THAT(report.measurements.back().failure, HasSubstr("budget of 0.1 s"));
  EXPECT_EQ(plants.back().verified, 0);
}

TEST_F(TunerTest, NoBudgetNoCandidates) {
  for (const double budget : {0.0, -1.0, kNan}) {
    plants.assign(2, {});
    const TuneReport report = tune({.budget_seconds = budget});
    EXPECT_FALSE(report.best);
    EXPECT_TRUE(report.out_of_budget);
    EXPECT_EQ(plants[0].verified, 0);
  }
}

TEST_F(TunerTest, ALostDeviceEndsTheSearch) {
  class LosingTrial final : public selection::Trial {
   public:
    double verify() override { throw DeviceLost("VK_ERROR_DEVICE_LOST"); }
    double time() override { return 0; }
  };
  const Variant* variant = testing::fake_operation().find_variant("plain");
  int made = 0;
  const TuneReport report = selection::tune(testing::fake_problem(64),
                                            {{variant, {{"WG_X", 1}}}, {variant, {{"WG_X", 2}}}},
                                            [&](const Candidate&) {
                                              ++made;
                                              return std::make_unique<LosingTrial>();
                                            },
                                            {}, {});
  EXPECT_EQ(made, 1);
  EXPECT_FALSE(report.best);
  EXPECT_THAT(report.measurements[1].failure, HasSubstr("device was lost"));
}

TEST_F(TunerTest, EveryCandidateIsAnEvent) {
  plants = {{.seconds = 1e-3}, {.error = 7}};
  tune();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].name, "autotune_candidate");
  EXPECT_EQ(events[0].variant, "plain");
  EXPECT_EQ(events[0].config, "WG_X=1");
  EXPECT_EQ(events[0].detail, "1/2");
  EXPECT_DOUBLE_EQ(events[0].milliseconds, 1);
  EXPECT_THAT(events[1].detail, HasSubstr("2/2: wrong result"));
}

// A clock that is too coarse for the kernel says 0, which must not read as "not timed".
TEST_F(TunerTest, ZeroIsATime) {
  plants = {{.seconds = 0}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 1U);
  EXPECT_GT(report.measurements[0].milliseconds, 0);
}

}  // namespace
}  // namespace tessera
