// SPDX-License-Identifier: Apache-2.0
// When GPUs take groups by the matrix units of Vulkan, and with which tiles. No device is needed.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernel/sources.hpp"
#include "selection/heuristics.hpp"
#include "support/profiles.hpp"
#include "support/reference.hpp"

namespace tessera {
namespace {

testing::Specs products(DType dtype, std::int64_t rows, std::int64_t groups) {
  return {{"lhs", TensorSpec::contiguous(dtype, {rows, 512})},
          {"rhs", TensorSpec::contiguous(dtype, {groups, 512, 1024})},
          {"group_sizes", TensorSpec::contiguous(DType::kI32, {groups})}};
}

Choice choice_of(const std::string& operation, const testing::Specs& specs,
                 const std::string& profile = "h200_vulkan") {
  return selection::heuristic_choice(testing::problem_of(operation, specs),
                                     testing::load_profile(profile), nullptr)
      .value();
}

class GroupsByMatrices : public ::testing::Test {
 protected:
  void SetUp() override {
    // An older glslc than cooperative matrices need leaves their kernels out.
    if (kernel::find_module(kernel::module_name("matmul/cooperative/grouped.comp", {{"DTYPE", 1}}))
            .words.empty())
      GTEST_SKIP() << "the glslc of this build knows no cooperative matrices";
  }
};

TEST_F(GroupsByMatrices, TakeTilesThatGroupsFill) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    EXPECT_EQ(choice_of("grouped_matmul", products(dtype, 8192, 8)).variant, "cooperative");
    EXPECT_EQ(choice_of("grouped_matmul", products(dtype, 8192, 8)).config.at("BLOCK_M"), 128U);
    EXPECT_EQ(choice_of("grouped_matmul", products(dtype, 8192, 32)).config.at("BLOCK_M"), 64U);
    EXPECT_EQ(choice_of("grouped_matmul", products(dtype, 8192, 200)).config.at("BLOCK_M"), 64U);
    EXPECT_EQ(choice_of("grouped_matmul", products(dtype, 1024, 64)).config.at("BLOCK_M"), 32U);
  }
  EXPECT_EQ(choice_of("grouped_matmul", products(DType::kF32, 8192, 8)).variant, "tile");
  EXPECT_EQ(choice_of("grouped_matmul", products(DType::kF16, 8, 8)).variant, "tile");
}

// Of AMD's GPUs, processors with graphics have fewer registers for four waves; of Intel's, Xe2 has
// twice as many lanes to share a part as those before.
TEST_F(GroupsByMatrices, TakeAsLargePartsOfTilesAsRegistersHold) {
  struct {
    const char* profile;
    std::uint32_t rows, columns;
  } constexpr kParts[] = {{"navi31_vulkan", 64, 64},
                          {"gfx1201_vulkan", 64, 64},
                          {"strix1_vulkan", 64, 32},
                          {"bmg_vulkan", 16, 32},
                          {"dg2_vulkan", 16, 16}};
  for (const auto& part : kParts) {
    const Choice choice = choice_of("grouped_matmul", products(DType::kF16, 8192, 8), part.profile);
    EXPECT_EQ(choice.variant, "cooperative") << part.profile;
    EXPECT_EQ(choice.config.at("GROUP_M"), part.rows) << part.profile;
    EXPECT_EQ(choice.config.at("GROUP_N"), part.columns) << part.profile;
  }
}

TEST_F(GroupsByMatrices, TakeGradientsAndGroupsOfTerms) {
  testing::Specs specs = products(DType::kBF16, 8192, 8);
  specs["grad_output"] = TensorSpec::contiguous(DType::kBF16, {8192, 1024});
  EXPECT_EQ(choice_of("grouped_matmul_backward", specs).variant, "cooperative");
  const testing::Specs turned{{"lhs", TensorSpec::contiguous(DType::kF16, {512, 8192})},
                              {"rhs", TensorSpec::contiguous(DType::kF16, {8192, 1024})},
                              {"group_sizes", TensorSpec::contiguous(DType::kI32, {8})}};
  EXPECT_EQ(choice_of("transposed_grouped_matmul", turned).variant, "cooperative");
}

}  // namespace
}  // namespace tessera
