// SPDX-License-Identifier: Apache-2.0
// attention/cpu/backward and attention/cpu/bf16_backward: CPUs through OpenCL.
#include "operations/attention_core/cpu/backward.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/cpu/products.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/cpu/backward.def"
      kSplits,
  };
}

// What backward.h says about a configuration.
struct CpuBackwardGeometry {
  bool valid = false;
  std::uint64_t private_bytes = 0;   // of one work-item
  std::uint32_t panel_keys = 1;      // of a tile of the map
  std::uint64_t packed_floats = 0;   // rows of q and do
  std::uint64_t partial_floats = 0;  // of one split
  std::int64_t block_keys = 1;       // of a work-item at a time
};

// backward.h's macros read the locals here.
CpuBackwardGeometry geometry(const Problem& problem, const Config& config, Products products) {
  const AttentionProblem& call = call_of(problem);
  using Number = std::uint64_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cpu/backward.def"
  const std::uint64_t HEAD_DIM = head_dim(problem);
  const std::uint64_t VALUE_DIM = value_dim(problem);
  const bool BF16_DOT = products == Products::kBf16Dot;
  constexpr std::uint64_t kMost = 4096;
  for (const std::uint64_t value :
       {VECTOR_WIDTH, BLOCK_Q, KEY_PANELS, VECTORS, QUERY_ROWS, FEATURES, DQ_VECTORS}) {
    if (value == 0 || value > kMost) return {};
  }
  if (!ATTN_CPU_VALID) return {};
  const auto batch = static_cast<std::uint64_t>(call.batch);
  const auto heads = static_cast<std::uint64_t>(call.heads);
  const auto q_len = static_cast<std::uint64_t>(call.q_len);
  return {.valid = true,
          .private_bytes = ATTN_CPU_PRIVATE_BYTES,
          .panel_keys = static_cast<std::uint32_t>(ATTN_LANES),
          .packed_floats = ATTN_CPU_PACKED_FLOATS(batch, heads, q_len),
          .partial_floats = ATTN_CPU_PARTIAL_FLOATS(std::uint64_t{1}, batch, heads, q_len),
          .block_keys = static_cast<std::int64_t>(ATTN_BLOCK_KEYS)};
}

// The fewest that give every core items to balance. From the shape alone, so that bits do not
// depend on what else runs.
Config with_splits(Config config, const Problem& problem, const DeviceProfile& profile,
                   Products products) {
  const AttentionProblem& call = call_of(problem);
  const std::int64_t heads = std::max<std::int64_t>(call.kv_heads * call.batch, 1);
  const std::int64_t wanted = 4 * std::max<std::int64_t>(profile.compute_units, 1);
  const std::int64_t most = std::max<std::int64_t>(
      ceil_div(call.kv_len, geometry(problem, config, products).block_keys), 1);
  config.set("SPLITS",
             static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(wanted, heads), most)));
  return config;
}

// Registers decide the tiles: 16 accumulators where there are 32 vector registers, 8 where there
// are 16. More panels read fewer rows, until they leave the second cache; a window makes use of
// few. 8 panels with 64 rows measured 0 to 2 % better than 4 panels, and than 128 rows, where every
// row sees every key, and the same under a causal mask (Zen 4, head_dim 64 and 128, 2048 rows).
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile, Products products) {
  const std::uint32_t width = vector_width(profile);
  const std::uint32_t rows = width == 16 ? 8 : 4;
  const auto make = [&](std::uint32_t panels) {
    return with_splits({{"WG_X", 1},
                        {"BLOCK_Q", 64},
                        {"KEY_PANELS", panels},
                        {"VECTORS", 2},
                        {"QUERY_ROWS", rows},
                        {"FEATURES", rows},
                        {"DQ_VECTORS", 2},
                        {"VECTOR_WIDTH", width}},
                       problem, profile, products);
  };
  const AttentionProblem& call = call_of(problem);
  const bool window = call.window_left < call.kv_len;
  if (window || head_dim(problem) > 128) return {make(4), make(8), make(2)};
  return {make(8), make(4), make(2)};
}

BackwardTiling tiling(const Problem& problem, const Config& config, Products products) {
  const CpuBackwardGeometry cut = geometry(problem, config, products);
  return {.map = {.rows = config.at("BLOCK_Q"), .keys = cut.panel_keys},
          .splits = splits_of(config),
          .partial_floats = cut.packed_floats + splits_of(config) * cut.partial_floats};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                Products products) {
  const CpuBackwardGeometry cut = geometry(problem, config, products);
  if (!call_of(problem).normalize) return "takes outputs that are divided by their weights' sum";
  if (!cut.valid)
    return "has blocks that are not whole tiles (operations/attention_core/cpu/backward.h)";
  if (const Refusal no = rejects_private_bytes(cut.private_bytes)) return no;
  return rejects_long_offsets(problem, profile,
                              backward_scratch_bytes(problem, tiling(problem, config, products)));
}

// Kernels of CPUs in files whose names begin so.
std::string file_of(Products products, const std::string& name) {
  return "attention/cpu/" + std::string(products == Products::kBf16Dot ? "bf16_" : "") + name;
}

BackwardTilingOf tiling_of(Products products) {
  return [products](const Problem& problem, const Config& config) {
    return tiling(problem, config, products);
  };
}

// One work-group for ATTN_CPU_ROW_BLOCK rows of a head, with policies or without.
Pass rows_of_head_pass(const std::string& name, std::vector<std::size_t> bindings,
                       Products products) {
  Pass pass = backward_pass(name, tiling_of(products), false);
  pass.opencl = {.file = file_of(products, "backward_rows.cl"),
                 .entry = "attention_backward_" + name + "_cpu"};
  pass.axes = dtype_axes;
  pass.specialized_on = {"QUERY_ROWS", "FEATURES",  "DQ_VECTORS",  "VECTORS",
                         "HEAD_DIM",   "VALUE_DIM", "VECTOR_WIDTH"};
  pass.bindings = std::move(bindings);
  pass.groups = [](const Problem& problem, const Config&) {
    return row_groups(problem, ATTN_CPU_ROW_BLOCK);
  };
  return pass;
}

Pass main_pass(const AttentionSlots& slots, bool policies, Products products) {
  Pass pass = backward_pass("main", tiling_of(products), policies);
  pass.opencl = {.file = file_of(products, "backward.cl"), .entry = "attention_backward_cpu"};
  pass.bindings = {slots.key, slots.value,        slots.log_sum_exp,
                   kScratch,  slots.key_gradient, slots.value_gradient};
  if (policies) {
    for (const std::size_t slot : policy_bindings(slots)) {
      if (slot != kScratch) pass.bindings.push_back(slot);
    }
  }
  pass.groups = [policies](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (!is_for(problem, policies)) return Dim3{0, 1, 1};
    return Dim3{splits_of(config), static_cast<std::uint32_t>(call.kv_heads),
                static_cast<std::uint32_t>(call.batch)};
  };
  return pass;
}

Variant variant_of(const AttentionSlots& slots, Products products) {
  Variant variant;
  variant.needs = opencl_cpu();
  variant.tunables = tunables();
  const BackwardTilingOf tiling = tiling_of(products);
  const Tiling map_tiling = [tiling](const Problem& problem, const Config& config) {
    return tiling(problem, config).map;
  };
  variant.passes = list_of(
      rows_pass(slots), map_pass(slots, map_tiling), peaks_pass(slots, tiling),
      rows_of_head_pass(
          "pack", {slots.query, slots.output, slots.output_gradient, slots.log_sum_exp, kScratch},
          products),
      main_pass(slots, false, products), main_pass(slots, true, products),
      rows_of_head_pass("reduce", {kScratch, slots.query_gradient}, products));
  for (Pass& pass : policy_gradient_passes(slots, tiling))
    variant.passes.push_back(std::move(pass));
  variant.space = [products](const Problem& problem, const DeviceProfile& profile) {
    return space(problem, profile, products);
  };
  variant.scratch_bytes = [tiling](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = [products](const Problem& problem, const Config& config,
                               const DeviceProfile& profile) {
    return rejects(problem, config, profile, products);
  };
  return variant;
}

}  // namespace

Way cpu_bf16_backward(const AttentionSlots& slots) {
  Variant variant = variant_of(slots, Products::kBf16Dot);
  variant.name = "cpu_bf16";
  variant.idea = "as cpu, on pairs of bfloat16 that AVX512_BF16 multiplies";
  variant.needs.features = Feature::kCpuBf16Dot;
  variant.dtypes = {DType::kBF16};
  variant.rounds_factors = true;
  return {.variant = std::move(variant),
          .rule = {.why = kWhyCpuBf16,
                   .when = prefers_cpu_bf16,
                   .config = [](const Problem& problem, const DeviceProfile& profile) {
                     return space(problem, profile, Products::kBf16Dot).front();
                   }}};
}

Way cpu_backward(const AttentionSlots& slots) {
  Variant variant = variant_of(slots, Products::kFloat);
  variant.name = "cpu";
  variant.idea =
      "keys in vector lanes; all five products of a tile at once, dq as partial sums of the splits";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  return {.variant = std::move(variant),
          .rule = {.why = "a CPU wants vectors in registers, not tiles in local memory",
                   .when = [](const Problem&, const DeviceProfile& p) { return is_opencl_cpu(p); },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile, Products::kFloat).front();
                       }}};
}

}  // namespace tessera::operations::attention
