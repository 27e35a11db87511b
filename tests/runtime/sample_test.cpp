// SPDX-License-Identifier: Apache-2.0
#include "conformance/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "runtime/program_cache.hpp"

namespace tessera::conformance {
namespace {

using ::testing::ElementsAre;

Config block(std::uint32_t size) { return {{"BLOCK", size}}; }

Candidate candidate(std::size_t number, std::uint32_t size) {
  return {.number = number, .configs = {block(size)}, .config = {}};
}

TEST(PinConfigsTest, TwoThatMostCasesAskForServeTheOthers) {
  std::vector<Candidate> candidates{candidate(0, 8),  candidate(1, 64), candidate(2, 64),
                                    candidate(3, 32), candidate(4, 32), candidate(5, 128)};
  // The sixth refuses the smaller one of the two.
  std::vector<Config> pinned;
  pin_configs(candidates, pinned, [](const Candidate& one, const Config& config) {
    return one.number != 5 || config.at("BLOCK") != 64;
  });
  EXPECT_THAT(pinned, ElementsAre(block(64), block(32)));
  EXPECT_EQ(candidates[0].config, block(64));
  EXPECT_EQ(candidates[3].config, block(32));
  EXPECT_EQ(candidates[5].config, block(32));
}

TEST(PinConfigsTest, CaseThatRefusesBothKeepsItsOwn) {
  std::vector<Candidate> candidates{candidate(0, 64), candidate(1, 64), candidate(2, 32),
                                    candidate(3, 32), candidate(4, 1)};
  std::vector<Config> pinned;
  pin_configs(candidates, pinned, [](const Candidate&, const Config&) { return false; });
  EXPECT_EQ(candidates[4].config, block(1));
}

TEST(PinConfigsTest, WhatIsPinnedComesFirst) {
  std::vector<Candidate> candidates{candidate(0, 64), candidate(1, 64), candidate(2, 32)};
  std::vector<Config> pinned{block(8)};
  pin_configs(candidates, pinned, [](const Candidate&, const Config&) { return true; });
  EXPECT_THAT(pinned, ElementsAre(block(8), block(64)));
  EXPECT_EQ(candidates[1].config, block(64));
  EXPECT_EQ(candidates[2].config, block(8));
}

TEST(PinConfigsTest, NothingNeedsNothing) {
  std::vector<Candidate> none;
  std::vector<Config> pinned;
  pin_configs(none, pinned, {});
  EXPECT_TRUE(pinned.empty());
}

Programs programs(const std::vector<std::string>& keys) {
  Programs all;
  for (const std::string& key : keys) {
    const std::size_t values = std::min(key.find('|'), key.size());
    all.push_back({.kernel = key.substr(0, values), .values = key.substr(values)});
  }
  return all;
}

std::vector<bool> sampled(const std::vector<std::vector<std::string>>& needs, const Worth& worth,
                          Built built = {}) {
  std::vector<Programs> all;
  std::ranges::transform(needs, std::back_inserter(all), programs);
  return sample_of(all, worth, built);
}

const std::vector<std::vector<std::string>> kDims{
    {"rows", "cpu|D=16"},        {"rows", "cpu|D=64"}, {"rows", "cpu|D=64"}, {"cpu|D=40|A=1"},
    {"rows", "cpu|D=64", "map"}, {"cpu|D=512"},        {"cpu|D=16"}};

TEST(SampleTest, EveryKernelOnceForTheCasesThatMostShare) {
  EXPECT_THAT(sampled(kDims, {}), ElementsAre(false, true, true, false, true, false, false));
}

TEST(SampleTest, MoreProgramsGoToLargeAndThenToNewValues) {
  EXPECT_THAT(sampled(kDims, {.more = 1}),
              ElementsAre(false, true, true, false, true, true, false));
  EXPECT_THAT(sampled(kDims, {.more = 2}), ElementsAre(false, true, true, true, true, true, false));
  EXPECT_THAT(sampled(kDims, {.more = 9}), ElementsAre(false, true, true, true, true, true, false));
}

TEST(SampleTest, NoProgramsForValuesThatAreKnown) {
  EXPECT_THAT(sampled({{"cpu|D=1|A=0"}, {"cpu|D=2|A=1"}, {"cpu|D=1|A=1"}}, {.more = 9}),
              ElementsAre(true, true, false));
}

// Numbers up to 8 are modes; above, what counts is what they are multiples of, and whether they are
// large.
TEST(SampleTest, NumbersOfAClassAreAlike) {
  for (const auto& [first, second, alike] :
       {std::tuple{"64", "128", true}, std::tuple{"40", "72", true}, std::tuple{"99", "100", true},
        std::tuple{"512", "1024", true}, std::tuple{"64", "40", false},
        std::tuple{"40", "100", false}, std::tuple{"256", "512", false},
        std::tuple{"7", "8", false}, std::tuple{"8", "16", false}}) {
    EXPECT_THAT(
        sampled({{std::string("cpu|D=") + first}, {std::string("cpu|D=") + second}}, {.more = 9}),
        ElementsAre(true, !alike))
        << first << " and " << second;
  }
}

// What follows the second bar is the storage type.
TEST(SampleTest, OtherTypesShareTheFunctions) {
  const auto names = [](const std::vector<std::string>& functions, const std::string& axes) {
    std::vector<Programs> all;
    for (const std::string& function : functions)
      all.push_back({{.kernel = function + axes, .values = "|D=64"}});
    return all;
  };
  const std::vector<std::string> functions{"a.cl|a", "b.cl|b", "c.cl|c", "d.cl|d"};
  Built built;
  sample_of(names(functions, "|DTYPE=0|POLICY=0"), {}, built);
  sample_of(names(functions, "|DTYPE=0|POLICY=1"), {}, built);
  std::size_t f16 = 0;
  for (const std::size_t number : {0, 1}) {
    const std::string type = "|DTYPE=" + std::to_string(number + 1);
    const Worth worth{.share = Share{.number = number, .count = 2}, .one_at_least = false};
    const std::vector<bool> plain = sample_of(names(functions, type + "|POLICY=0"), worth, built);
    if (number == 0) f16 = static_cast<std::size_t>(std::ranges::count(plain, true));
    EXPECT_THAT(sample_of(names(functions, type + "|POLICY=1"), worth, built),
                ::testing::Each(false));
  }
  for (const std::string& function : functions)
    EXPECT_EQ(built.types.at(function).size(), 2U) << function;
  EXPECT_GT(f16, 0U);
  EXPECT_LT(f16, functions.size());
}

TEST(SampleTest, ATypeThatIsAValueIsAStorageTypeToo) {
  const auto program = [](const std::string& type) {
    return std::vector<Programs>{{{.kernel = "cpu.cl|cpu", .values = "|ROWS=4|A_TYPE=" + type}}};
  };
  Built built;
  sample_of(program("0"), {}, built);
  const Worth other{.share = Share{}, .one_at_least = false};
  EXPECT_THAT(sample_of(program("1"), other, built), ElementsAre(true));
  EXPECT_THAT(sample_of(program("2"), other, built), ElementsAre(false));
}

runtime::ProgramName storing(const std::string& function, int type, int code = 0) {
  return {.kernel = function + "|DTYPE=" + std::to_string(type),
          .values = "|D=64|CODE_TYPE=" + std::to_string(code)};
}

TEST(SampleTest, TheSameKernelInBothLanguagesGetsBothTypes) {
  for (const std::string file : {"a", "norms/rows", "attention/core/map"}) {
    std::size_t taken = 0;
    for (const std::string& function : {file + ".cl|rows", file + ".comp|main"}) {
      Built built;
      built.add(storing(function, 0));
      const Share f16{.number = 0, .count = 2}, bf16{.number = 1, .count = 2};
      const Programs first{storing(function, 1)}, second{storing(function, 2)};
      EXPECT_NE(is_missing(first, f16, built), is_missing(second, bf16, built)) << function;
      if (is_missing(first, f16, built)) ++taken;
      built.add(storing(function, 1));
      EXPECT_FALSE(is_missing(second, bf16, built)) << "two types are enough for " << function;
    }
    EXPECT_EQ(taken, 1U) << file;
  }
}

TEST(SampleTest, LargeValuesAreMissingWhereAFunctionMetNone) {
  Built built;
  built.add(programs({"tile|D=256"})[0]);
  EXPECT_TRUE(is_missing(programs({"tile|D=257"}), {}, built));
  EXPECT_FALSE(is_missing(programs({"tile|D=64"}), {}, built));
  built.add(programs({"tile|D=512"})[0]);
  EXPECT_FALSE(is_missing(programs({"tile|D=257"}), {}, built));
}

TEST(SampleTest, CodesAreNewOncePerFunction) {
  Built built;
  built.add(storing("cpu.cl|decode", 0));
  EXPECT_FALSE(brings_codes({storing("cpu.cl|decode", 1)}, built));
  EXPECT_TRUE(brings_codes({storing("cpu.cl|decode", 1, 7)}, built));
  built.add(storing("cpu.cl|decode", 2, 7));
  EXPECT_FALSE(brings_codes({storing("cpu.cl|decode", 1, 7)}, built));
  EXPECT_TRUE(brings_codes({storing("tile.cl|tile", 1, 7)}, built));
}

TEST(SampleTest, NoKernelTwice) {
  Built built;
  built.add(programs({"cpu|D=512"})[0]);
  built.add(programs({"rows"})[0]);
  EXPECT_THAT(sampled(kDims, {}, built), ElementsAre(false, true, true, false, true, true, false));
}

TEST(SampleTest, OneCaseAtLeast) {
  Built built;
  built.add(programs({"cpu|D=1"})[0]);
  EXPECT_THAT(sampled({{"cpu|D=2"}, {"cpu|D=3"}, {"cpu|D=3"}}, {}, built),
              ElementsAre(false, true, true));
  EXPECT_THAT(sampled({{"a"}, {"b"}, {"b"}}, {.kernels = false}), ElementsAre(false, true, true));
  // But where another operation runs these kernels.
  EXPECT_THAT(sampled({{"cpu|D=2"}, {"cpu|D=3"}}, {.one_at_least = false}, built),
              ElementsAre(false, false));
}

TEST(SampleTest, AddsWhatItTakes) {
  Built built;
  sample_of({programs({"cpu|D=1"}), programs({"cpu|D=2"}), programs({"cpu|D=2"})}, {}, built);
  EXPECT_THAT(built.programs, ElementsAre("cpu|D=2"));
}

TEST(SampleTest, CaseThatNeedsNothingIsKept) {
  EXPECT_THAT(sampled({{}, {"a"}, {}}, {}), ElementsAre(true, true, true));
}

// The sample reads the first axis as the third field.
TEST(ProgramNameTest, TheTargetStandsBehindTheAxes) {
  Pass pass;
  pass.opencl = {.file = "some.cl", .entry = "some", .ptx_target = "sm_90a"};
  pass.axes = [](const Problem&, const DeviceProfile&) { return std::vector<Define>{{"T", 1}}; };
  Operation operation;
  Problem problem;
  problem.operation = &operation;
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  EXPECT_EQ(runtime::ProgramCache::name(problem, {}, pass, {}, profile).kernel,
            "some.cl|some|T=1|sm_90a");
}

}  // namespace
}  // namespace tessera::conformance
