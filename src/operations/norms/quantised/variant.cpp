// SPDX-License-Identifier: Apache-2.0
// norms/quantised: the output in 8 bits with a scale for each row, on every device.
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/norms/cuts.hpp"
#include "operations/norms/quantised/pass.hpp"

namespace tessera::operations::norms {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/norms/quantised/tunables.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
}

Variant quantised_variant() {
  Pass pass = quantise_pass();
  pass.opencl = {.file = "norms/quantised/forward.cl", .entry = "norm_quantised"};
  pass.vulkan = {.file = "norms/quantised/forward.comp", .entry = "main"};
  pass.constants = line_constants;
  pass.groups = line_groups;

  Variant variant;
  variant.name = "quantised";
  variant.idea =
      "a line of work-items keeps a row in registers until its largest magnitude is known";
  variant.types = quantised_types();
  variant.tunables = tunables();
  variant.passes = list_of(std::move(pass));
  variant.space = line_space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return 16ULL * config.get("WG_X", 1) * config.get("WG_Y", 1);
  };
  variant.rejects = [](const Problem& problem, const Config& config,
                       const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_lines(config, profile)) return no;
    return rejects_norm(problem, profile);
  };
  return variant;
}

}  // namespace

Way quantised_way() {
  return {.variant = quantised_variant(),
          .rule = {.why = "outputs in 8 bits, on every device",
                   .when = [](const Problem& problem, const DeviceProfile&) {
                     return problem.has(kScale);
                   }}};
}

}  // namespace tessera::operations::norms
