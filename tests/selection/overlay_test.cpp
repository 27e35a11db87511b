// SPDX-License-Identifier: Apache-2.0
// Overlays and policies: scopes of one thread that nest.
#include "selection/cache/overlay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/system/environment.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

class OverlayTest : public ::testing::Test {
 protected:
  // The work-group size that is chosen now; 1 is what the rule says without an overlay.
  std::uint32_t chosen() {
    return selector.choose({.problem = &problem, .profile = &profile}).config.at("WG_X");
  }
  static std::vector<OverlayEntry> entry(std::uint32_t group, std::string key = "*") {
    return {{.operation = "scale",
             .key = std::move(key),
             .variant = "plain",
             .config = {{"WG_X", group}}}};
  }

  static std::vector<OverlayEntry> one(OverlayEntry entry) { return {std::move(entry)}; }

  Problem problem = testing::fake_problem(4096);
  DeviceProfile profile = testing::load_profile("pocl_cpu");
  selection::Selector selector{{}, {}};
};

TEST_F(OverlayTest, NestAndUnwind) {
  EXPECT_EQ(chosen(), 1U);
  {
    const ScopedOverlay outer(entry(2));
    EXPECT_EQ(chosen(), 2U);
    {
      const ScopedOverlay inner(entry(4));
      EXPECT_EQ(chosen(), 4U);
      const ScopedOverlay other(one({.operation = "matmul", .variant = "tile", .config = {}}));
      EXPECT_EQ(chosen(), 4U) << "an overlay that says nothing about this operation hides nothing";
    }
    EXPECT_EQ(chosen(), 2U);
  }
  EXPECT_EQ(chosen(), 1U);
  EXPECT_FALSE(selection::overlays_active());
}

TEST_F(OverlayTest, OwnKeyBeforeEveryKeyButInnerBeforeOuter) {
  std::vector<OverlayEntry> both = entry(2);
  both.push_back(entry(8, problem.key).front());
  const ScopedOverlay outer(both);
  EXPECT_EQ(chosen(), 8U);
  const ScopedOverlay other_key(entry(16, "dtype=f32;n=1"));
  EXPECT_EQ(chosen(), 8U);
  const ScopedOverlay inner(entry(4));
  EXPECT_EQ(chosen(), 4U);
}

TEST_F(OverlayTest, UnwindsWhenAnExceptionPasses) {
  try {
    const ScopedOverlay overlay(entry(2));
    throw 1;
  } catch (int) {
    EXPECT_EQ(chosen(), 1U);
  }
}

TEST_F(OverlayTest, BelongsToItsThread) {
  const ScopedOverlay here(entry(2));
  std::uint32_t seen = 0;
  std::thread([&] {
    EXPECT_FALSE(selection::overlays_active());
    seen = chosen();
    const ScopedOverlay there(entry(32));
    EXPECT_EQ(chosen(), 32U);
  }).join();
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(chosen(), 2U);
}

TEST_F(OverlayTest, EndsInAnyOrder) {
  auto first = std::make_unique<ScopedOverlay>(entry(2));
  auto second = std::make_unique<ScopedOverlay>(entry(4));
  first.reset();
  EXPECT_EQ(chosen(), 4U);
  second.reset();
  EXPECT_EQ(chosen(), 1U);
}

TEST_F(OverlayTest, EmptyConfigurationIsTheFirstThatFits) {
  const ScopedOverlay overlay(one({.operation = "scale", .variant = "plain", .config = {}}));
  EXPECT_EQ(chosen(), 256U);
}

TEST_F(OverlayTest, InvalidOnesAreErrors) {
  const auto error = [&](std::vector<OverlayEntry> entries) -> std::string {
    const ScopedOverlay overlay(std::move(entries));
    try {
      chosen();
    } catch (const Error& caught) {
      return caught.what();
    }
    return "";
  };
  EXPECT_THAT(error({{.operation = "scale", .variant = "plain", .config = {{"WG_X", 8192}}}}),
              HasSubstr("overlay plain{WG_X=8192} is not possible here"));
  EXPECT_THAT(error({{.operation = "scale", .variant = "fancy", .config = {}}}),
              HasSubstr("the overlay names the variant 'fancy'"));
  EXPECT_THAT(error({{.operation = "scale", .variant = "blocked", .config = {}}}),
              HasSubstr("needs subgroups"));
  EXPECT_THROW(ScopedOverlay(one({.operation = "scale", .variant = "", .config = {}})),
               InvalidArgument);
  EXPECT_THROW(ScopedOverlay(one({.operation = "", .variant = "plain", .config = {}})),
               InvalidArgument);
  EXPECT_FALSE(selection::overlays_active());
}

TEST_F(OverlayTest, AnOverrideGoesBefore) {
  const ScopedOverlay overlay(entry(2));
  const Choice choice =
      selector.choose({.problem = &problem,
                       .profile = &profile,
                       .override_choice = {.variant = "plain", .config = {{{"WG_X", 16}}}}});
  EXPECT_EQ(choice.config.at("WG_X"), 16U);
}

TEST(PolicyScopes, NestPerThread) {
  const Policy before = current_policy();
  EXPECT_EQ(before.autotune, environment().autotune);
  EXPECT_TRUE(before.heuristics);
  {
    const ScopedPolicy outer({.autotune = true, .tune_seconds = 3});
    EXPECT_EQ(current_policy().tune_seconds, 3);
    {
      const ScopedPolicy inner({.heuristics = false});
      EXPECT_FALSE(current_policy().autotune);
      EXPECT_FALSE(current_policy().heuristics);
      EXPECT_EQ(current_policy().tune_seconds, 10)
          << "a policy replaces the outer one, it does not add to it";
    }
    EXPECT_TRUE(current_policy().autotune);
    std::thread([&] { EXPECT_EQ(current_policy().autotune, before.autotune); }).join();
  }
  EXPECT_EQ(current_policy().tune_seconds, before.tune_seconds);
  EXPECT_FALSE(selection::scoped_policy());
}

TEST(TierNames, AreThoseOfTheDocuments) {
  std::string names;
  for (const Tier tier : {Tier::kOverride, Tier::kOverlay, Tier::kMemory, Tier::kPersistent,
                          Tier::kShipped, Tier::kAutotune, Tier::kHeuristics}) {
    names += std::string(to_string(tier)) + " ";
  }
  EXPECT_EQ(names, "override overlay memory persistent shipped autotune heuristics ");
}

}  // namespace
}  // namespace tessera
