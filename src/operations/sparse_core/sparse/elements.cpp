// SPDX-License-Identifier: Apache-2.0
// Element by element: any device, blocks of any size, single values above all.
#include <algorithm>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/sparse_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

std::vector<Config> space(const Problem& /*problem*/, const DeviceProfile& profile) {
  const std::uint32_t units = std::max(kernel::compute_units_of(profile), 1U);
  if (is_cpu(profile)) return {{{"WG_X", 32}, {"GROUPS", 16 * units}}};
  return {{{"WG_X", 128}, {"GROUPS", 64 * units}}, {{"WG_X", 64}, {"GROUPS", 64 * units}}};
}

Pass product_pass(const SparseStage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {.file = "matmul/sparse/product.cl", .entry = "sparse_product"};
  pass.vulkan = {.file = "matmul/sparse/product.comp", .entry = "main"};
  pass.bindings = {stage.a, stage.b, kScratch, stage.result};
  pass.axes = storage_axes;
  pass.constants = [stage](const Problem& problem, const Config&) {
    return sparse_constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = sparse_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    const std::int64_t elements = product->results * product->m * product->n;
    return Dim3{std::min(ceil_div(elements, config.group().x), std::max(config.at("GROUPS"), 1U))};
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    return argument_bytes(product ? product->args : abi::GroupedArgs{});
  };
  return pass;
}

}  // namespace

Way sparse_elements_way(const SparseSlots& slots) {
  Variant variant;
  variant.name = "elements";
  variant.idea = "an item for each element of a result; blocks that are not stored cost nothing";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/sparse_core/sparse/elements.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.space = space;
  variant.rejects = [](const Problem& problem, const Config&, const DeviceProfile& profile) {
    return rejects_sparse(problem, profile);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return sparse_scratch(problem);
  };
  variant.passes = sparse_passes(slots, product_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::matmul
