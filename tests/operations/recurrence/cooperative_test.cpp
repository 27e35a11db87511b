// SPDX-License-Identifier: Apache-2.0
// When GPUs take recurrences by the matrix units of Vulkan. No device is needed.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "kernel/sources.hpp"
#include "selection/heuristics.hpp"
#include "support/profiles.hpp"
#include "support/reference.hpp"

namespace tessera {
namespace {

Choice choice_of(const char* profile, DType dtype, std::int64_t tokens, std::int64_t key_dim,
                 std::string_view operation = "gla") {
  const auto rows = [&](std::int64_t dim) {
    return TensorSpec::contiguous(dtype, {1, tokens, 4, dim});
  };
  testing::Specs specs{
      {"query", rows(key_dim)}, {"key", rows(key_dim)}, {"value", rows(128)}, {"g", rows(key_dim)}};
  if (operation.ends_with("_backward")) specs.insert({"grad_output", rows(128)});
  if (operation.starts_with("delta_rule")) {
    specs.erase("g");
    specs.insert({"beta", TensorSpec::contiguous(dtype, {1, tokens, 4})});
  }
  const DeviceProfile device = testing::load_profile(profile);
  return selection::heuristic_choice(testing::problem_of(std::string(operation), specs), device,
                                     nullptr)
      .value();
}

class RecurrentMatrices : public ::testing::Test {
 protected:
  void SetUp() override {
    // An older glslc than cooperative matrices need leaves their kernels out.
    if (kernel::find_module(
            kernel::module_name("recurrence/cooperative/states.comp", {{"DTYPE", 1}}))
            .words.empty())
      GTEST_SKIP() << "the glslc of this build knows no cooperative matrices";
  }
};

TEST_F(RecurrentMatrices, AreOfLongSequencesOfSixteenBits) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Choice choice = choice_of("h200_vulkan", dtype, 8192, 128);
    EXPECT_EQ(choice.variant, "cooperative");
    EXPECT_EQ(choice.config.at("TOKENS"), 64U);
    EXPECT_EQ(choice.config.group().x, 256U);
  }
  EXPECT_EQ(choice_of("h200_vulkan", DType::kF32, 8192, 128).variant, "tile");
  EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 32, 128).variant, "tile");
  EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 8192, 24).variant, "tile");
}

TEST_F(RecurrentMatrices, TakeShorterChunksWhereRowsAreLong) {
  EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 8192, 256).config.at("TOKENS"), 32U);
}

TEST_F(RecurrentMatrices, AreLeftWhereTheyWouldSpill) {
  EXPECT_EQ(choice_of("navi31_vulkan", DType::kF16, 8192, 128).variant, "cooperative");
  EXPECT_EQ(choice_of("dg2_vulkan", DType::kF16, 8192, 128).variant, "tile");
  EXPECT_EQ(choice_of("bmg_vulkan", DType::kF16, 8192, 128).variant, "tile");
}

TEST_F(RecurrentMatrices, TakeGradientsOfLongSequences) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Choice choice = choice_of("h200_vulkan", dtype, 8192, 128, "gla_backward");
    EXPECT_EQ(choice.variant, "cooperative");
    EXPECT_EQ(choice.config.at("TOKENS"), 32U);
    EXPECT_EQ(choice.config.group().x, 256U);
  }
  EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 8192, 256, "gla_backward").config.at("TOKENS"),
            16U);
  EXPECT_EQ(choice_of("h200_vulkan", DType::kF32, 8192, 128, "gla_backward").variant, "tile");
  EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 32, 128, "gla_backward").variant, "tile");
  EXPECT_EQ(choice_of("dg2_vulkan", DType::kF16, 8192, 128, "gla_backward").variant, "tile");
}

TEST_F(RecurrentMatrices, TakeDeltaRulesOfLongSequences) {
  for (const char* operation : {"delta_rule", "delta_rule_backward"}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      const Choice choice = choice_of("h200_vulkan", dtype, 8192, 128, operation);
      EXPECT_EQ(choice.variant, "cooperative") << operation;
      EXPECT_EQ(choice.config.at("TOKENS"), 64U) << operation;
    }
    EXPECT_EQ(choice_of("h200_vulkan", DType::kF32, 8192, 128, operation).variant, "tile");
    EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 32, 128, operation).variant, "tile");
    // Local memory holds no state of longer rows.
    EXPECT_EQ(choice_of("h200_vulkan", DType::kBF16, 8192, 256, operation).variant, "tile");
  }
}

}  // namespace
}  // namespace tessera
