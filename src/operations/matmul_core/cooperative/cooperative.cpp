// SPDX-License-Identifier: Apache-2.0
// Matrix units through Vulkan, of any vendor.
#include <algorithm>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/cooperative/geometry.h"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/matrix_units.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis
constexpr std::int64_t kVector = 8;           // elements

std::vector<Tunable> tunables() {
  std::vector<Tunable> list{
#include "operations/matmul_core/cooperative/cooperative.def"
#include "operations/matmul_core/sums.def"
  };
  list.push_back({.id = 30, .name = "FILL", .fallback = 1, .launch_only = true});
  return list;
}

struct CooperativeGeometry {
  bool valid = false;
  std::uint64_t local_bytes = 0;
};

// Of the lines that take more local memory, whichever way the operands lie.
CooperativeGeometry geometry_of(const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/matmul_core/cooperative/cooperative.def"
  constexpr std::uint32_t kMost = 1024;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {BLOCK_M, BLOCK_N, BLOCK_K, MATRIX_M, WG_X}) {
    if (value > kMost) return {};
  }
  if (!(COOPERATIVE_DIVISORS) || !(COOPERATIVE_VALID)) return {};
  CooperativeGeometry geometry{.valid = true};
  for (const std::uint32_t A_BY_TERMS : {0U, 1U}) {
    for (const std::uint32_t B_BY_TERMS : {0U, 1U})
      geometry.local_bytes = std::max(geometry.local_bytes, std::uint64_t{16} * (COOPERATIVE_AREA));
  }
  return geometry;
}

std::vector<Pass> passes_of(const Stage& stage) {
  if (stage.step == Step::kGradBias) return sums_passes(stage, 0);
  if (!multiplies(stage)) return {combine_pass(stage, block_splits)};
  Pass pass = block_pass(stage);
  pass.vulkan = {.file = "matmul/cooperative/product.comp", .entry = "main"};
  pass.specialized_on = std::vector<std::string>{"BLOCK_M",  "BLOCK_N",    "BLOCK_K",    "GROUP_M",
                                                 "GROUP_N",  "LANES",      "MATRIX_M",   "MATRIX_N",
                                                 "MATRIX_K", "A_BY_TERMS", "B_BY_TERMS", "ALIGNED"};
  pass.constants = [stage](const Problem& problem, const Config&) {
    return line_constants(problem, stage, kVector);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    if (!product) return Dim3{0, 0, 0};
    const std::uint64_t units = block_tiles(*product, config) * block_splits(*product, config);
    const auto x = static_cast<std::uint32_t>(std::min<std::uint64_t>(units, kMostGroups));
    return Dim3{x, static_cast<std::uint32_t>((units + x - 1) / x)};
  };
  return {std::move(pass), combine_pass(stage, block_splits)};
}

// The device's shapes for this call, largest first: an instruction of them does most.
std::vector<MatrixShape> shapes(const Problem& problem, const DeviceProfile& profile) {
  std::vector<MatrixShape> found;
  for (const MatrixShape& shape : profile.matrix_shapes) {
    if (shape.input == problem.dtype && shape.m % kVector == 0 && shape.n % kVector == 0 &&
        shape.k % kVector == 0)
      found.push_back(shape);
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const MatrixShape& s) { return s.m * s.n * s.k; });
  return found;
}

struct Cut {
  std::uint32_t block_m, block_n, block_k, group_m, group_n;
};

// Large tiles first, those of which there are too few to fill the device last, the smallest first.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Cut> cuts{
      {128, 128, 32, 64, 32}, {128, 128, 32, 64, 64}, {64, 64, 32, 32, 32}, {32, 64, 32, 16, 32}};
  // A step's operands must arrive while the products of one are taken: of 64 terms they do on an
  // H200.
  if (profile.vendor_id == kVendorNvidia) cuts.insert(cuts.begin(), {128, 128, 64, 32, 64});
  // 128 registers to an item, of as many floats as a sub-group has lanes; by Mesa's compiler.
  if (profile.vendor_id == kVendorIntel && profile.subgroup_size <= 8) {
    cuts = {{64, 64, 16, 16, 16}, {32, 32, 16, 8, 16}};
  } else if (profile.vendor_id == kVendorIntel) {
    cuts = {{64, 64, 32, 16, 16}, {32, 32, 32, 16, 16}};
  }
  if (is_cpu(profile)) cuts = {{16, 32, 16, 16, 16}};  // they only check these kernels
  const std::uint32_t fill = is_cpu(profile) ? 1 : kernel::compute_units_of(profile);
  std::vector<Config> list;
  for (const MatrixShape& shape : shapes(problem, profile)) {
    for (const Cut& cut : cuts) {
      const std::uint32_t groups = cut.block_m / cut.group_m * (cut.block_n / cut.group_n);
      const Config config{{"BLOCK_M", cut.block_m},
                          {"BLOCK_N", cut.block_n},
                          {"BLOCK_K", cut.block_k},
                          {"GROUP_M", cut.group_m},
                          {"GROUP_N", cut.group_n},
                          {"LANES", profile.subgroup_size},
                          {"MATRIX_M", shape.m},
                          {"MATRIX_N", shape.n},
                          {"MATRIX_K", shape.k},
                          {"WG_X", groups * profile.subgroup_size},
                          {"FILL", fill}};
      const CooperativeGeometry geometry = geometry_of(config);
      if (geometry.valid && geometry.local_bytes <= profile.local_memory &&
          config.group().x <= profile.max_group_size)
        list.push_back(config);
    }
  }
  const std::vector<Product> products = multiplied(problem);
  const auto too_small = std::ranges::stable_partition(list, [&](const Config& config) {
    return std::ranges::all_of(
        products, [&](const Product& product) { return block_tiles(product, config) >= fill; });
  });
  std::ranges::stable_sort(too_small, {},
                           [](const Config& config) { return config.at("BLOCK_M"); });
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  if (!geometry_of(config).valid)
    return "has a work-group that does not divide into matrices "
           "(operations/matmul_core/cooperative/geometry.h)";
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
  variant.needs = {.backends = {Backend::kVulkan},
                   .features = Feature::kStorage16 | Feature::kFp16Arithmetic |
                               Feature::kSubgroupArithmetic | Feature::kCooperativeMatrix};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = slots.backward();
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return geometry_of(config).local_bytes;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_with_sums(problem, config, block_splits, 0);
  };
  for (const Stage& stage : stages(slots, true)) {
    for (Pass& pass : passes_of(stage)) variant.passes.push_back(std::move(pass));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "the device's matrix unit",
                   .when = prefers_cooperative,
                   .config = [](const Problem& problem, const DeviceProfile& profile) {
                     return space(problem, profile).front();
                   }}};
}

}  // namespace tessera::operations::matmul
