// SPDX-License-Identifier: Apache-2.0
// How attention is computed where, and which way is taken untuned.
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

std::vector<Variant> attention_variants(const AttentionSlots& slots) {
  return {cpu_variant(slots),
          cpu_bf16_variant(slots),
          cpu_decode_variant(slots),
          decode_variant(slots),
          hopper_variant(slots),
          mma_variant(slots),
          cooperative_registers_variant(slots),
          cooperative_variant(slots),
          tile_variant(slots),
          tile_subgroup_variant(slots)};
}

std::vector<Rule> attention_rules() {
  return {
      {.why = "few query rows are bound by the memory that holds the keys",
       .when = prefers_cpu_decode,
       .variant = "cpu_decode",
       .config = default_cpu_decode_config},
      {.why = "a CPU's dot products of bfloat16 do twice the work of float multiply-adds",
       .when = prefers_cpu_bf16,
       .variant = "cpu_bf16",
       .config = default_cpu_bf16_config},
      {.why = "a CPU wants vectors in registers, not tiles in local memory",
       .when = [](const Problem&, const DeviceProfile& p) { return is_opencl_cpu(p); },
       .variant = "cpu",
       .config = default_cpu_config},
      {.why = "few query rows are bound by the memory that holds the keys",
       .when = prefers_decode,
       .variant = "decode",
       .config = default_decode_config},
      {.why = "Hopper's matrix unit, where a warpgroup's 64 rows are filled",
       .when = prefers_hopper,
       .variant = "hopper",
       .config = default_hopper_config},
      {.why = "matrix instructions, where their 16 rows are filled",
       .when = prefers_mma,
       .variant = "mma",
       .config = default_mma_config},
      {.why = "the device's matrix unit, scores stay in its registers",
       .when = prefers_cooperative_registers,
       .variant = "cooperative_registers",
       .config = default_cooperative_registers_config},
      {.why = "the device's matrix unit",
       .when = prefers_cooperative,
       .variant = "cooperative",
       .config = default_cooperative_config},
      {.why = "sub-group shuffles save barriers",
       .when =
           [](const Problem&, const DeviceProfile& p) {
             return p.backend == Backend::kVulkan && has(p.features, Feature::kSubgroupArithmetic);
           },
       .variant = "tile_subgroup",
       .config = default_tile_config},
      {.why = "the base tier runs everywhere",
       .when = [](const Problem&, const DeviceProfile&) { return true; },
       .variant = "tile",
       .config = default_tile_config},
  };
}

std::vector<Variant> attention_backward_variants(const AttentionSlots& slots) {
  return {cpu_backward_variant(slots), hopper_backward_variant(slots), mma_backward_variant(slots),
          mma_wide_backward_variant(slots), tile_backward_variant(slots)};
}

std::vector<Rule> attention_backward_rules() {
  return {
      {.why = "a CPU wants vectors in registers, not tiles in local memory",
       .when = [](const Problem&, const DeviceProfile& p) { return is_opencl_cpu(p); },
       .variant = "cpu",
       .config = default_cpu_backward_config},
      {.why = "Hopper's matrix unit, where its tiles are filled",
       .when = prefers_hopper_backward,
       .variant = "hopper",
       .config = default_hopper_backward_config},
      {.why = "matrix instructions, where a row's sums do not fit the registers of one warp",
       .when = prefers_mma_wide_backward,
       .variant = "mma_wide",
       .config = default_mma_wide_backward_config},
      {.why = "matrix instructions, where their 16 rows are filled",
       .when = prefers_mma_backward,
       .variant = "mma",
       .config = default_mma_backward_config},
      {.why = "the base tier runs everywhere",
       .when = [](const Problem&, const DeviceProfile&) { return true; },
       .variant = "tile",
       .config = default_tile_backward_config},
  };
}

}  // namespace tessera::operations::attention
