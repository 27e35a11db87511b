// SPDX-License-Identifier: Apache-2.0
// What a call's precision rules out, and what calls of different precisions share.
#include "tessera/precision.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "selection/cache/overlay.hpp"
#include "selection/selector.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

// scale, with a variant `blocked` that rounds factors to f16, and `single` before it that rounds
// its float operands, too.
const Operation& rounding_operation() {
  static const Operation operation = [] {
    Operation made = testing::fake_operation();
    made.variants.front().rounds_factors = true;
    Variant single = made.variants[1];
    single.name = "single";
    single.precision = Precision::kDefault;
    made.variants.insert(made.variants.begin(), std::move(single));
    return made;
  }();
  return operation;
}

Problem problem_at(Precision precision, DType dtype) {
  Problem problem =
      make_problem(rounding_operation(), {TensorSpec::contiguous(dtype, {4096}), std::nullopt}, {});
  problem.precision = precision;
  return problem;
}

class PrecisionTest : public ::testing::Test {
 protected:
  Refusal refusal(const char* variant, Precision precision, DType dtype) const {
    return selection::refusal(problem_at(precision, dtype),
                              *rounding_operation().find_variant(variant), profile);
  }
  Choice choose(const Problem& problem, std::string variant = {}) {
    selection::Selector selector({.memory = &memory, .persistent = &persistent}, {});
    return selector.choose({.problem = &problem,
                            .profile = &profile,
                            .override_choice = {.variant = std::move(variant), .config = {}}});
  }

  DeviceProfile profile = testing::load_profile("rdna3_vulkan");
  testing::FakeStore memory, persistent;
};

TEST(Precision, Words) {
  for (const Precision precision : {Precision::kDefault, Precision::kHigh, Precision::kHighest})
    EXPECT_EQ(parse_precision(to_string(precision)), precision);
  for (const char* word : {"", "medium", "Highest", "high "})
    EXPECT_THROW(parse_precision(word), InvalidArgument) << word;
}

TEST_F(PrecisionTest, RefusalsSayWhatIsRounded) {
  EXPECT_FALSE(refusal("blocked", Precision::kDefault, DType::kF16));
  EXPECT_FALSE(refusal("blocked", Precision::kHigh, DType::kF16));
  EXPECT_EQ(refusal("blocked", Precision::kHighest, DType::kF16),
            "rounds factors between two products to f16, and precision=highest forbids that");
  EXPECT_FALSE(refusal("blocked", Precision::kHighest, DType::kF32))
      << "nothing is rounded to a storage type of 32 bits";
  EXPECT_FALSE(refusal("single", Precision::kDefault, DType::kF32));
  EXPECT_EQ(refusal("single", Precision::kHigh, DType::kF32),
            "rounds operands or sums to less than float, and precision=high forbids that");
  EXPECT_FALSE(refusal("plain", Precision::kHighest, DType::kF16));
}

TEST_F(PrecisionTest, TheBestThatKeepsItIsChosen) {
  EXPECT_EQ(choose(problem_at(Precision::kDefault, DType::kF16)).variant, "blocked");
  EXPECT_EQ(choose(problem_at(Precision::kHigh, DType::kF16)).variant, "blocked");
  EXPECT_EQ(choose(problem_at(Precision::kHighest, DType::kF16)).variant, "plain");
}

TEST_F(PrecisionTest, NobodyCanAskForLess) {
  const Problem problem = problem_at(Precision::kHighest, DType::kF16);
  try {
    choose(problem, "blocked");
    ADD_FAILURE() << "an override was obeyed";
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), HasSubstr("precision=highest forbids that"));
  }
  const ScopedOverlay overlay({OverlayEntry{.operation = "scale", .variant = "single"}});
  EXPECT_THROW(choose(problem), Unsupported);
}

TEST_F(PrecisionTest, KeysDifferWhereTheChoiceCan) {
  const auto key = [](Precision precision, DType dtype) {
    return selection::entry_key(problem_at(precision, dtype));
  };
  const std::string plain = key(Precision::kDefault, DType::kF32);
  EXPECT_EQ(plain, "scale|dtype=f32;n=4096");
  EXPECT_EQ(key(Precision::kHigh, DType::kF32), plain + ";precision=high");
  EXPECT_EQ(key(Precision::kHighest, DType::kF32), plain + ";precision=high")
      << "float operands lose the same variants";
  EXPECT_EQ(key(Precision::kHigh, DType::kF16), "scale|dtype=f16;n=4096;precision=high");
  EXPECT_EQ(key(Precision::kHighest, DType::kF16), "scale|dtype=f16;n=4096;precision=highest");
  Problem unaffected = testing::fake_problem(4096);
  unaffected.precision = Precision::kHighest;
  EXPECT_EQ(selection::entry_key(unaffected), plain);
  EXPECT_EQ(selection::entry_key(problem_at(Precision::kHighest, DType::kF16), "plain"),
            "scale|dtype=f16;n=4096|variant=plain");
}

TEST_F(PrecisionTest, WhatIsBestOfAllIsTakenIfItKeepsThePrecision) {
  const Problem demanding = problem_at(Precision::kHighest, DType::kF16);
  const std::string any = selection::undemanding_key(demanding);
  persistent.entries[any] = testing::tuned("plain", {{"WG_X", 64}});
  EXPECT_EQ(choose(demanding).config.to_string(), "UNROLL=4,WG_X=64");
  EXPECT_EQ(choose(demanding).origin, Tier::kAutotune);
  // Another is best of all, but rounds.
  memory.entries.clear();
  persistent.entries[any] = testing::tuned("blocked", {{"BLOCK", 64}, {"WG_X", 64}});
  EXPECT_EQ(choose(demanding).variant, "plain");
  EXPECT_EQ(choose(demanding).origin, Tier::kHeuristics);
  EXPECT_EQ(choose(problem_at(Precision::kHigh, DType::kF16)).variant, "blocked");
  // What was tuned for the precision goes before.
  memory.entries.clear();
  persistent.entries[any] = testing::tuned("plain", {{"WG_X", 64}});
  persistent.entries[selection::entry_key(demanding)] = testing::tuned("plain", {{"WG_X", 32}});
  EXPECT_EQ(choose(demanding).config.to_string(), "UNROLL=4,WG_X=32");
}

TEST(Precision, ScopesNestAndBelongToTheirThread) {
  EXPECT_FALSE(selection::scoped_precision());
  {
    const ScopedPrecision outer(Precision::kHighest);
    {
      const ScopedPrecision inner(Precision::kHigh);
      EXPECT_EQ(selection::scoped_precision(), Precision::kHigh);
    }
    EXPECT_EQ(selection::scoped_precision(), Precision::kHighest);
    std::thread([] { EXPECT_FALSE(selection::scoped_precision()); }).join();
  }
  EXPECT_FALSE(selection::scoped_precision());
}

}  // namespace
}  // namespace tessera
