// SPDX-License-Identifier: Apache-2.0
#include "conformance/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(WithinBudgetTest, CasesThatShareProgramsComeFirst) {
  const std::vector<Programs> needs{{"rows", "d16"}, {"rows", "d64"},        {"rows", "d64"},
                                    {"rows", "d40"}, {"rows", "d64", "map"}, {"rows", "d512"}};
  const auto kept = [&](std::size_t most, std::set<std::string> built = {}) {
    return within_budget(needs, most, built);
  };
  EXPECT_THAT(kept(3), ElementsAre(true, true, true, false, false, false));
  EXPECT_THAT(kept(5), ElementsAre(true, true, true, true, true, false));
  EXPECT_THAT(kept(6), ElementsAre(true, true, true, true, true, true));
  EXPECT_THAT(kept(1, {"rows", "d512"}), ElementsAre(false, true, true, false, false, true));
}

TEST(WithinBudgetTest, AddsWhatIsBuilt) {
  std::set<std::string> built{"a"};
  within_budget({{"a", "b"}, {"c"}, {"d", "e"}}, 2, built);
  EXPECT_THAT(built, ElementsAre("a", "b", "c"));
}

TEST(WithinBudgetTest, CaseThatNeedsNothingIsKept) {
  std::set<std::string> built;
  EXPECT_THAT(within_budget({{}, {"a"}}, 0, built), ElementsAre(true, false));
}

}  // namespace
}  // namespace tessera::conformance
