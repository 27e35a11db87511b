// SPDX-License-Identifier: Apache-2.0
// When GPUs take spans of a sequence at once, forward and back. No device is needed.
#include <gtest/gtest.h>

#include "selection/heuristics.hpp"
#include "support/profiles.hpp"
#include "support/reference.hpp"

namespace tessera {
namespace {

constexpr std::int64_t kSpanHeads = 4, kSpanDim = 128;

Choice choice_of(const char* profile, bool backward, std::int64_t tokens, bool value_decay) {
  const testing::Specs::mapped_type rows = testing::f32({1, tokens, kSpanHeads, kSpanDim});
  testing::Specs specs{{"query", rows}, {"key", rows}, {"value", rows}, {"g", rows}};
  if (value_decay) specs["gv"] = rows;
  if (backward) {
    for (const char* name : {"grad_output", "grad_query", "grad_key", "grad_value", "grad_g"})
      specs[name] = rows;
  }
  const Problem problem = testing::problem_of(backward ? "recurrent_backward" : "recurrent", specs);
  const DeviceProfile device = testing::load_profile(profile);
  return selection::heuristic_choice(problem, device, nullptr).value();
}

TEST(RecurrentSpans, AreOfLongSequencesOnGpus) {
  for (const char* profile : {"h200_opencl", "h200_vulkan", "rdna3_vulkan", "arc_vulkan"}) {
    for (const bool backward : {false, true}) {
      SCOPED_TRACE(std::string(profile) + (backward ? " backward" : " forward"));
      EXPECT_GT(choice_of(profile, backward, 8192, false).config.get("SPANS", 1), 1U);
      EXPECT_EQ(choice_of(profile, backward, 64, false).config.get("SPANS", 1), 1U);
      EXPECT_EQ(choice_of(profile, backward, 8192, true).config.get("SPANS", 1), 1U);
    }
  }
}

TEST(RecurrentSpans, TheWayBackHoldsAGibibyteOfStatesAtMost) {
  for (const char* profile : {"h200_opencl", "rdna3_vulkan", "arc_vulkan"}) {
    const Config config = choice_of(profile, true, 8192, false).config;
    const std::uint64_t items = std::uint64_t{config.group().x} * config.group().y;
    const std::uint64_t groups =
        config.get("SPANS", 1) * kSpanHeads * kSpanDim / (4 * config.group().x);
    EXPECT_LE(groups * config.at("SEGMENT") * config.at("ROWS") * items * 16, 1ULL << 30)
        << profile;
  }
}

}  // namespace
}  // namespace tessera
