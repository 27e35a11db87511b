// SPDX-License-Identifier: Apache-2.0
// How flash attention is computed where, and which way is taken untuned.
#include "operations/flash_attention/launch.hpp"

namespace tessera::operations {

std::vector<Variant> flash_attention_variants() {
  return {cpu_variant(), tile_variant(), tile_subgroup_variant()};
}

std::vector<Rule> flash_attention_rules() {
  return {
      {.why = "a CPU wants vectors in registers, not tiles in local memory",
       .when = [](const Problem&,
                  const DeviceProfile& p) { return p.backend == Backend::kOpenCL && is_cpu(p); },
       .variant = "cpu",
       .config = default_cpu_config},
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

}  // namespace tessera::operations
