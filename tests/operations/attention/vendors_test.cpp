// SPDX-License-Identifier: Apache-2.0
// Which configurations attention begins with on GPUs that nobody here owns. That compilers do not
// spill them is what tests/vendors checks.
#include <gtest/gtest.h>

#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/sources.hpp"
#include "selection/heuristics.hpp"
#include "support/profiles.hpp"

namespace tessera::operations {
namespace {

Problem problem_of(const std::string& operation, DType dtype, std::int64_t rows, std::int64_t keys,
                   std::int64_t dim) {
  const TensorSpec q = TensorSpec::contiguous(dtype, {1, rows, 4, dim});
  const TensorSpec k = TensorSpec::contiguous(dtype, {1, keys, 4, dim});
  if (operation == "flash_attention") return make_problem(find_operation(operation), {q, k, k}, {});
  const TensorSpec lse = TensorSpec::contiguous(DType::kF32, {1, 4, rows});
  return make_problem(find_operation(operation), {q, k, k, q, lse, q}, {}, {});
}

Choice chosen(const Problem& problem, const DeviceProfile& profile) {
  const auto choice = selection::heuristic_choice(problem, profile, nullptr);
  return choice ? *choice : Choice{};
}

struct Row {
  const char* profile;
  const char* operation;
  DType dtype;
  std::int64_t dim;
  const char* variant;
  const char* config;
};

// Measured there (docs/performance/method.md), and not to change with what suits others.
TEST(AttentionOnGpus, H200BeginsWithWhatWasMeasured) {
  const Row rows[] = {
      {"h200_vulkan", "flash_attention", DType::kF32, 64, "tile_subgroup",
       "BLOCK_K=64,BLOCK_Q=64,ITEM_ROWS=4,KEEP_Q=0,PREFETCH=0,SLICE_D=32,SLICE_K=16,SPLITS=1,WG_X="
       "128"},
      {"h200_vulkan", "flash_attention", DType::kF32, 128, "tile_subgroup",
       "BLOCK_K=64,BLOCK_Q=64,ITEM_ROWS=8,KEEP_Q=0,PREFETCH=0,SLICE_D=32,SLICE_K=16,SPLITS=1,WG_X="
       "128"},
      {"h200_vulkan", "flash_attention", DType::kF32, 256, "tile_subgroup",
       "BLOCK_K=64,BLOCK_Q=64,ITEM_ROWS=8,KEEP_Q=0,PREFETCH=0,SLICE_D=32,SLICE_K=16,SPLITS=1,WG_X="
       "128"},
      {"h200_vulkan", "flash_attention", DType::kF16, 64, "cooperative_registers",
       "BLOCK_K=64,BUFFERS=1,LANES=32,MATRIX_K=16,MATRIX_M=16,MATRIX_N=16,PREFETCH=1,ROWS=16,WG_X="
       "256"},
      {"h200_vulkan", "flash_attention", DType::kF16, 128, "cooperative_registers",
       "BLOCK_K=64,BUFFERS=1,LANES=32,MATRIX_K=16,MATRIX_M=16,MATRIX_N=16,PREFETCH=1,ROWS=16,WG_X="
       "256"},
      {"h200_vulkan", "flash_attention", DType::kF16, 256, "cooperative_registers",
       "BLOCK_K=32,BUFFERS=1,LANES=32,MATRIX_K=16,MATRIX_M=16,MATRIX_N=16,PREFETCH=0,ROWS=16,WG_X="
       "128"},
      {"h200_vulkan", "flash_attention_backward", DType::kF16, 64, "cooperative_registers",
       "BUFFERS=2,KEYS_HELD=1,KEY_ROWS=16,KEY_STEP=32,LANES=32,MATRIX_K=16,MATRIX_M=16,MATRIX_N=16,"
       "PREFETCH=1,QUERY_ROWS=16,QUERY_STEP=32,ROWS_HELD=1,WG_X=256"},
      {"h200_vulkan", "flash_attention_backward", DType::kF16, 128, "cooperative_registers",
       "BUFFERS=1,KEYS_HELD=0,KEY_ROWS=16,KEY_STEP=16,LANES=32,MATRIX_K=16,MATRIX_M=16,MATRIX_N=16,"
       "PREFETCH=1,QUERY_ROWS=16,QUERY_STEP=32,ROWS_HELD=1,WG_X=128"},
      {"h200_vulkan", "flash_attention_backward", DType::kF32, 256, "tile",
       "BLOCK_K=64,BLOCK_Q=64,ITEM_ROWS=4,SLICE_D=32,SLICE_STEP=8,WG_X=256"},
      {"h200_opencl", "flash_attention", DType::kF16, 64, "hopper",
       "BLOCK_K=128,BLOCK_Q=192,GROUPS=132,LATE_RESCALE=0,OWN_OVERLAP=0,SHARE_Q=0,STAGES=2,TURNS=1,"
       "WG_X=512"},
      {"h200_opencl", "flash_attention", DType::kF32, 128, "mma",
       "BLOCK_K=32,BLOCK_Q=128,KEEP_Q=0,SPLITS=2,STAGES=1,WG_X=128"},
      {"h200_opencl", "flash_attention", DType::kF32, 512, "tile",
       "BLOCK_K=256,BLOCK_Q=32,ITEM_ROWS=8,KEEP_Q=0,PREFETCH=0,SLICE_D=8,SLICE_K=4,SPLITS=1,WG_X="
       "256"},
      {"h200_opencl", "flash_attention_backward", DType::kF16, 128, "hopper",
       "BLOCK_Q=64,GROUPS=132,STAGES=2,WG_X=384"},
      {"h200_opencl", "flash_attention_backward", DType::kF32, 512, "tile",
       "BLOCK_K=32,BLOCK_Q=64,ITEM_ROWS=2,SLICE_D=16,SLICE_STEP=8,WG_X=256"},
  };
  // An older glslc than cooperative matrices need leaves their kernels out.
  const bool matrices =
      !kernel::find_module(kernel::module_name("attention/cooperative/forward.comp",
                                               {{"DTYPE", 1}, {"POLICY", 0}, {"REGISTERS", 1}}))
           .words.empty();
  for (const Row& row : rows) {
    if (!matrices && std::string(row.variant) == "cooperative_registers") continue;
    const DeviceProfile profile = testing::load_profile(row.profile);
    const Choice choice =
        chosen(problem_of(row.operation, row.dtype, 4096, 4096, row.dim), profile);
    EXPECT_EQ(choice.variant, row.variant) << row.profile << " " << row.operation << " " << row.dim;
    EXPECT_EQ(choice.config.to_string(), row.config)
        << row.profile << " " << row.operation << " " << row.dim;
  }
}

// What was measured on Hopper spills elsewhere, and on Blackwell what is clean before it.
TEST(AttentionOnGpus, OtherGpusOfNvidiaBeginWithCutsThatSpillNothing) {
  DeviceProfile profile = testing::load_profile("ampere_opencl");
  const Problem forward = problem_of("flash_attention", DType::kF16, 4096, 4096, 128);
  const Problem backward = problem_of("flash_attention_backward", DType::kF16, 4096, 4096, 128);
  Config config = chosen(forward, profile).config;
  EXPECT_EQ(config.at("BLOCK_Q"), 128U);
  EXPECT_EQ(config.at("BLOCK_K"), 32U);
  config = chosen(backward, profile).config;
  EXPECT_EQ(config.at("KEY_STEP"), 32U);
  EXPECT_EQ(config.at("QUERY_TILES"), 1U);
  profile.compiler = "OpenCL 3.0 CUDA 13.0.98 sm_100";
  config = chosen(forward, profile).config;
  EXPECT_EQ(config.at("BLOCK_Q"), 64U);
  EXPECT_EQ(config.at("BLOCK_K"), 64U);
}

TEST(AttentionOnGpus, AmdGetsSmallTiles) {
  for (const std::string& name : testing::profile_names()) {
    const DeviceProfile profile = testing::load_profile(name);
    if (profile.vendor_id != kVendorAmd) continue;
    for (const std::string operation : {"flash_attention", "flash_attention_backward"}) {
      for (const std::int64_t dim : {40, 64, 128, 256}) {
        const Problem problem = problem_of(operation, DType::kF32, 300, 300, dim);
        const Choice choice = chosen(problem, profile);
        const Variant& variant = *problem.operation->find_variant(choice.variant);
        const std::uint64_t bytes = variant.local_bytes(problem, choice.config);
        EXPECT_LE(128 * bytes / choice.config.group().x, 16U << 10) << name << " dim " << dim;
      }
    }
  }
}

TEST(AttentionOnGpus, IntelGetsFewRowsToAnItem) {
  for (const std::string& name : testing::profile_names()) {
    const DeviceProfile profile = testing::load_profile(name);
    if (profile.vendor_id != kVendorIntel || !is_gpu(profile)) continue;
    EXPECT_TRUE(profile.backend == Backend::kOpenCL || profile.subgroup_size <= 16) << name;
    for (const std::int64_t dim : {40, 64, 128, 256}) {
      const Choice choice =
          chosen(problem_of("flash_attention", DType::kF32, 300, 300, dim), profile);
      // Sub-groups of 16 leave an item of Xe2 twice as much.
      const std::uint32_t most = profile.subgroup_size == 16 ? 4 : 2;
      EXPECT_LE(choice.config.at("ITEM_ROWS"), most) << name << " dim " << dim;
    }
  }
}

// A driver that does not say how many cores there are leaves none of them idle.
TEST(AttentionOnGpus, KeysAreSplitWhereComputeUnitsAreUnknown) {
  DeviceProfile profile = testing::load_profile("dg2_vulkan");
  ASSERT_EQ(profile.compute_units, 0U);
  const Problem decode = problem_of("flash_attention", DType::kF16, 1, 16384, 128);
  EXPECT_GT(chosen(decode, profile).config.get("SPLITS", 1), 1U);
  EXPECT_EQ(kernel::compute_units_of(profile), 32U);
  profile.kind = DeviceKind::kIntegratedGpu;
  EXPECT_EQ(kernel::compute_units_of(profile), 8U);
  EXPECT_EQ(kernel::compute_units_of(testing::load_profile("h200_vulkan")), 132U);
  // Execution units are no cores.
  EXPECT_EQ(kernel::compute_units_of(testing::load_profile("dg2_opencl")), 64U);
}

// RDNA 3 holds a matrix four times over in a sub-group of 64, RDNA 4 once.
TEST(AttentionOnGpus, MatricesOfRdna3TakeMoreRegisters) {
  EXPECT_EQ(kernel::lanes_of_a_matrix(testing::load_profile("navi31_vulkan")), 16U);
  EXPECT_EQ(kernel::lanes_of_a_matrix(testing::load_profile("gfx1201_vulkan")), 64U);
}

}  // namespace
}  // namespace tessera::operations
