// SPDX-License-Identifier: Apache-2.0
// The tuner among planted candidates: whatever is wrong with one, it must not win, and its reason
// must be kept.
#include "selection/tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/fake_operation.hpp"
#include "support/waking_device.hpp"
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
  double waits = 0;          // beside each run, in seconds by the wall clock
  double check_takes = 0;    // as well
  int loses_device_at = -1;  // a run
  int runs = 0, verified = 0;
  std::vector<double> times{};  // of the first runs, instead of `seconds`
};

// Where the plants run, and the wall clock there.
struct Machine {
  double now = 0;
  double slower = 1, slower_each_run = 1;
  testing::WakingDevice* device = nullptr;
};

class PlantedTrial final : public selection::Trial {
 public:
  PlantedTrial(Plant& plant, Machine& machine) : plant_(plant), machine_(machine) {}
  double verify() override {
    ++plant_.verified;
    machine_.now += plant_.check_takes;
    if (machine_.device != nullptr) machine_.device->idle(plant_.check_takes);
    if (!plant_.verify_failure.empty()) throw Error(plant_.verify_failure);
    return plant_.error;
  }
  double time() override {
    EXPECT_EQ(plant_.verified, 1) << "timed before it was known to be right";
    const auto run = static_cast<std::size_t>(plant_.runs++);
    if (!plant_.launch_failure.empty()) throw DeviceError(plant_.launch_failure);
    if (plant_.loses_device_at == static_cast<int>(run)) throw DeviceLost("VK_ERROR_DEVICE_LOST");
    if (machine_.device != nullptr) return machine_.device->run(plant_.seconds);
    machine_.slower *= machine_.slower_each_run;
    const double seconds =
        machine_.slower * (run < plant_.times.size() ? plant_.times[run] : plant_.seconds);
    machine_.now += plant_.waits + (seconds > 0 && std::isfinite(seconds) ? seconds : 1e-6);
    return seconds;
  }

 private:
  Plant& plant_;
  Machine& machine_;
};

class TunerTest : public ::testing::Test {
 protected:
  // Candidates are told apart by their work-group size: the place in `plants`, from 1.
  TuneReport tune(selection::TuneOptions options = {}) {
    const Variant* variant = testing::fake_operation().find_variant("plain");
    options.now = [this] {
      return machine.device != nullptr ? machine.device->now() : machine.now;
    };
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
          return std::make_unique<PlantedTrial>(plant, machine);
        },
        options, [&](const Event& event) { events.push_back(event); });
  }
  static std::uint32_t winner(const TuneReport& report) {
    return report.best ? report.best->config.at("WG_X") : 0;
  }

  std::vector<Plant> plants;
  std::vector<Event> events;
  Machine machine;
};

TEST_F(TunerTest, TheFastestOfTheRightOnesWins) {
  plants = {{.seconds = 3e-3}, {.seconds = 1e-3}, {.seconds = 2e-3}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 2U);
  EXPECT_EQ(report.operation, "scale");
  EXPECT_EQ(report.key, "dtype=f32;n=64");
  EXPECT_EQ(report.best->tier, Tier::kAutotune);
  EXPECT_THAT(report.best->why, HasSubstr("the fastest of 3 right; 3 of 3 candidates tried"));
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
  EXPECT_THAT(report.best->why, HasSubstr("of 2 right; 15 of 15 candidates tried"));
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
  plants = {{.seconds = 2e-3}, {.seconds = 1e-3, .times = {9e-3, 9e-3, 1e-3, 9e-3}}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 2U);
  EXPECT_EQ(plants[1].runs, 1 + 7) << "once when it was checked";
  EXPECT_DOUBLE_EQ(report.measurements[1].milliseconds, 1);
  EXPECT_DOUBLE_EQ(report.measurements[1].spread, 8);
}

TEST_F(TunerTest, SlowOnesAreGivenUpAfterTwoRounds) {
  plants = {{.seconds = 1e-3}, {.seconds = 1.6e-3}, {.seconds = 1.4e-3}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 1U);
  EXPECT_GT(plants[0].runs, 1 + 7) << "it warmed the device up";
  EXPECT_EQ(plants[1].runs, 1 + 2);
  EXPECT_EQ(plants[2].runs, 1 + 7);
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
  plants.assign(50, {.seconds = 1e-3, .waits = 5e-3});
  const TuneReport report = tune({.budget_seconds = 0.3});
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_TRUE(report.best);
  EXPECT_LT(machine.now, 0.4);
  EXPECT_GE(report.seconds, 0.2);
  EXPECT_THAT(report.measurements.back().failure, HasSubstr("budget of 0.3 s"));
  const auto tried = std::ranges::count_if(report.measurements, [](const Measurement& each) {
    return !each.failure.starts_with("not tried");
  });
  ASSERT_TRUE(report.best);
  EXPECT_THAT(report.best->why, HasSubstr("; " + std::to_string(tried) + " of "));
  EXPECT_EQ(plants.back().verified, 0);
}

// What was checked is timed, or checking it was in vain.
TEST_F(TunerTest, BudgetLeavesTimeForTheTiming) {
  plants.assign(50, {.seconds = 2e-3, .check_takes = 0.1});
  plants[3].seconds = 1e-3;
  const TuneReport report = tune({.budget_seconds = 1});
  EXPECT_EQ(winner(report), 4U);
  EXPECT_GT(plants[4].verified, 0);
  for (const Measurement& result : report.measurements)
    EXPECT_EQ(result.failure.empty(), result.milliseconds > 0) << result.config.to_string();
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

TEST_F(TunerTest, ADeviceThatIsLostWhileItIsTimedEndsTheTiming) {
  plants = {{.seconds = 1e-3}, {.seconds = 1.1e-3, .loses_device_at = 1}, {.seconds = 1.2e-3}};
  const TuneReport report = tune();
  EXPECT_EQ(winner(report), 1U) << "it was timed before";
  EXPECT_EQ(report.measurements[1].failure, "VK_ERROR_DEVICE_LOST");
  EXPECT_THAT(report.measurements[2].failure, HasSubstr("not timed: the device was lost before"));
  EXPECT_EQ(plants[2].runs, 1);
}

TEST_F(TunerTest, EveryCandidateIsAnEvent) {
  plants = {{.seconds = 1e-3}, {.error = 7}};
  tune();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].name, "autotune_candidate");
  EXPECT_EQ(events[0].variant, "plain");
  EXPECT_EQ(events[0].config, "WG_X=1");
  EXPECT_EQ(events[0].detail, "1/2");
  EXPECT_THAT(events[1].detail, HasSubstr("2/2: wrong result"));
  EXPECT_EQ(events[2].name, "autotune_timed");
  EXPECT_EQ(events[2].config, "WG_X=1");
  EXPECT_DOUBLE_EQ(events[2].milliseconds, 1);
}

// ---- devices that save power

constexpr WarmUp kPatient{.window_seconds = 0.25, .least_seconds = 0.75, .most_seconds = 4};

// Those that come first must not look slow because the device was still asleep.
TEST_F(TunerTest, AWakingDeviceFavoursNobody) {
  for (int turn = 0; turn < 3; ++turn) {
    testing::WakingDevice waking;
    machine.device = &waking;
    plants = {{.seconds = 20e-3}, {.seconds = 30e-3}, {.seconds = 25e-3}};
    std::rotate(plants.begin(), plants.begin() + turn, plants.end());
    const TuneReport report =
        tune({.warm_up = kPatient, .clock_mhz = [&] { return waking.megahertz(); }});
    ASSERT_TRUE(report.best);
    EXPECT_EQ(plants[winner(report) - 1].seconds, 20e-3) << turn;
    for (std::size_t i = 0; i < plants.size(); ++i)
      EXPECT_NEAR(report.measurements[i].milliseconds, 1e3 * plants[i].seconds, 1e-6) << turn;
    EXPECT_TRUE(report.settled);
    EXPECT_EQ(report.clock_mhz, 1980);
  }
}

// Checking takes the host seconds, in which the device has nothing to do.
TEST_F(TunerTest, ADeviceThatFellAsleepBetweenChecksIsWokenOnce) {
  testing::WakingDevice waking;
  machine.device = &waking;
  plants.assign(4, {.seconds = 3e-3, .check_takes = 0.7});
  plants[1].seconds = 1e-3;
  const TuneReport report = tune({.warm_up = kPatient});
  EXPECT_EQ(winner(report), 2U);
  EXPECT_NEAR(report.measurements[1].milliseconds, 1, 1e-9);
  EXPECT_NEAR(report.measurements[3].milliseconds, 3, 1e-9);
}

// The machine gets slower while the tuner works: in turns, all candidates meet that alike.
TEST_F(TunerTest, CandidatesAreTimedInTurns) {
  plants = {{.seconds = 1.01e-3}, {.seconds = 1e-3}};
  machine.slower_each_run = 1.005;
  EXPECT_EQ(winner(tune()), 2U);
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
