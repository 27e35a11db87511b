// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL: mma.sync on tiles that are copied asynchronously.
#include <algorithm>
#include <string>

#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/matrix_units.hpp"
#include "operations/matmul_core/mma/geometry.h"

namespace tessera::operations::matmul {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/matmul_core/mma/mma.def"
#include "operations/matmul_core/sums.def"
      {.id = 30, .name = "FILL", .fallback = 1, .launch_only = true},
  };
}

struct MmaGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
};

MmaGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/matmul_core/mma/mma.def"
  const auto MMA_ELEMENT_BYTES = static_cast<std::uint32_t>(size_of(problem.dtype));
  if (!(MATMUL_MMA_VALID)) return {};
  return {.valid = true, .local_bytes = MATMUL_MMA_LOCAL_BYTES};
}

std::vector<Pass> passes_of(const Stage& stage) {
  if (stage.step == Step::kGradBias) return sums_passes(stage, 0);
  if (!multiplies(stage)) return list_of(combine_pass(stage, block_splits));
  Pass pass = block_pass(stage);
  pass.opencl = {.file = "matmul/mma/product.cl", .entry = "matmul_mma"};
  pass.specialized_on = std::vector<std::string>{"BLOCK_M", "BLOCK_N",    "STAGES",     "WARP_M",
                                                 "WARP_N",  "A_BY_TERMS", "B_BY_TERMS", "ALIGNED"};
  pass.constants = [stage](const Problem& problem, const Config&) {
    return line_constants(problem, stage, 1);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    if (!product) return Dim3{0, 0, 0};
    return Dim3{
        static_cast<std::uint32_t>(block_tiles(*product, config) * block_splits(*product, config))};
  };
  return list_of(std::move(pass), combine_pass(stage, block_splits));
}

// Wide tiles first, those of which there are too few to fill the device last.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t units = kernel::compute_units_of(profile);
  const auto config = [&](std::uint32_t block_m, std::uint32_t block_n, std::uint32_t stages,
                          std::uint32_t warp_m, std::uint32_t warp_n) {
    const std::uint32_t items = 32 * (block_m / warp_m) * (block_n / warp_n);
    return Config{{"BLOCK_M", block_m}, {"BLOCK_N", block_n}, {"STAGES", stages},
                  {"WARP_M", warp_m},   {"WARP_N", warp_n},   {"WG_X", items},
                  {"FILL", units}};
  };
  std::vector<Config> list;
  if (problem.dtype == DType::kF32) {
    list = {config(128, 128, 3, 64, 64), config(64, 128, 3, 32, 32), config(16, 128, 3, 16, 32)};
  } else {
    list = {config(128, 256, 4, 64, 64), config(128, 128, 3, 64, 64), config(64, 128, 3, 32, 64),
            config(16, 128, 4, 16, 32)};
  }
  std::erase_if(list, [&](const Config& each) {
    return geometry_of(problem, each).local_bytes > kernel::nvidia_local_bytes(profile);
  });
  const std::vector<Product> products = multiplied(problem);
  kernel::put_first(list, [&](const Config& each) {
    return std::ranges::all_of(products, [&](const Product& product) {
      return block_tiles(product, each) >= units && product.m * 2 > each.at("BLOCK_M");
    });
  });
  const bool few = std::ranges::any_of(
      products, [&](const Product& product) { return block_tiles(product, list.front()) < units; });
  if (few) kernel::sort_configs(list, [](const Config& each) { return each.at("BLOCK_M"); });
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const MmaGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/matmul_core/mma/geometry.h)";
  if (Refusal no = kernel::rejects_nvidia_bytes(geometry.local_bytes, profile)) return no;
  if (Refusal no = rejects_products(problem, profile)) return no;
  if (Refusal no = rejects_sums(problem, config, block_splits, 0)) return no;
  return rejects_blocks(problem, config);
}

bool prefers_mma(const Problem& problem, const DeviceProfile& profile) {
  // Three products of tf32 beat float arithmetic where the matrix unit is several times as fast. On
  // GPUs for graphics it is not, and nobody has measured others.
  const bool pays = problem.dtype != DType::kF32 || has(profile.features, Feature::kWgmma);
  return has(profile.features, Feature::kMmaSync) && pays &&
         fills_matrix_unit(problem.as<MatmulProblem>());
}

}  // namespace

Way mma_way(const MatmulSlots& slots) {
  Variant variant;
  variant.name = "mma";
  variant.idea =
      "mma.sync on tiles that are copied asynchronously; floats as three products of tf32";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.rounds_factors = slots.backward();
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_with_sums(problem, config, block_splits, 0);
  };
  for (const Stage& stage : stages(slots, true)) {
    for (Pass& pass : passes_of(stage)) variant.passes.push_back(std::move(pass));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "matrix instructions, where their rows are filled", .when = prefers_mma}};
}

}  // namespace tessera::operations::matmul
