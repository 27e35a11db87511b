// SPDX-License-Identifier: Apache-2.0
// Matrix units through Vulkan, of any vendor.
#include <algorithm>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/cooperative_tiles.hpp"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/matrix_units.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::int64_t kVector = 8;  // elements

// FILL is how many work-groups a product should have at least: where it has fewer tiles, they share
// their terms, and the sums go through scratch.
std::vector<Tunable> tunables() {
  std::vector<Tunable> list = cooperative_tunables();
  const std::vector<Tunable> more{
#include "operations/matmul_core/sums.def"
      {.id = 30, .name = "FILL", .fallback = 1, .launch_only = true}};
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

std::vector<Pass> passes_of(const Stage& stage) {
  if (stage.step == Step::kGradBias) return sums_passes(stage, 0);
  if (!multiplies(stage)) return list_of(combine_pass(stage, block_splits));
  Pass pass = block_pass(stage);
  pass.vulkan = {.file = "matmul/cooperative/product.comp", .entry = "main"};
  pass.specialized_on = cooperative_names();
  pass.constants = [stage](const Problem& problem, const Config&) {
    return line_constants(problem, stage, kVector);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    if (!product) return Dim3{0, 0, 0};
    const std::uint64_t units = block_tiles(*product, config) * block_splits(*product, config);
    return groups_of_units(units);
  };
  return list_of(std::move(pass), combine_pass(stage, block_splits));
}

// Large tiles first, those of which there are too few to fill the device last, the smallest first.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t fill = is_cpu(profile) ? 1 : kernel::compute_units_of(profile);
  std::vector<Config> list = cooperative_cuts(problem, profile);
  // Half as many sub-groups of 64 by 64 are faster by NVIDIA's driver, which alone has this
  // feature; by NVK they spill.
  if (profile.vendor_id == kVendorNvidia && has(profile.features, Feature::kMatrixRegisters) &&
      !list.empty() && list.front().at("GROUP_M") == 32 && list.front().at("GROUP_N") == 64) {
    Config config = list.front();
    config.set("GROUP_M", 64);
    config.set("WG_X", config.group().x / 2);
    list.insert(list.begin(), std::move(config));
  }
  for (Config& config : list) config.set("FILL", fill);
  const std::vector<Product> products = multiplied(problem);
  const auto too_small = kernel::put_first(list, [&](const Config& config) {
    return std::ranges::all_of(
        products, [&](const Product& product) { return block_tiles(product, config) >= fill; });
  });
  kernel::sort_configs(too_small, [](const Config& config) { return config.at("BLOCK_M"); });
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_cooperative_cut(problem, config, profile)) return no;
  if (Refusal no = rejects_products(problem, profile)) return no;
  if (Refusal no = rejects_sums(problem, config, block_splits, 0)) return no;
  return rejects_blocks(problem, config);
}

bool prefers_cooperative(const Problem& problem, const DeviceProfile& profile) {
  return profile.backend == Backend::kVulkan && fills_matrix_unit(problem.as<MatmulProblem>()) &&
         !space(problem, profile).empty();
}

}  // namespace

Way cooperative_way(const MatmulSlots& slots) {
  Variant variant;
  variant.name = "cooperative";
  variant.idea = "cooperative matrices on tiles in local memory";
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = slots.backward();
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return cooperative_local_bytes(config);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_with_sums(problem, config, block_splits, 0);
  };
  for (const Stage& stage : stages(slots, true)) {
    for (Pass& pass : passes_of(stage)) variant.passes.push_back(std::move(pass));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "the device's matrix unit", .when = prefers_cooperative}};
}

}  // namespace tessera::operations::matmul
