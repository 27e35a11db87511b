// SPDX-License-Identifier: Apache-2.0
// Rows in the registers of work-groups: any device.
#include <algorithm>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/norms/cuts.hpp"
#include "operations/norms/passes.hpp"

namespace tessera::operations::norms {
namespace {

constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis

// Lines of a work-group that adds up what others left.
std::uint32_t combine_lines(const Config& config) { return config.get("LINES", kCombineLines); }

std::vector<Tunable> tunables(bool backward) {
  std::vector<Tunable> list{
#include "operations/norms/rows/tunables.def"
  };
  list.push_back({.id = 31, .name = "GROUPS", .fallback = kMostGroups, .launch_only = true});
  if (backward)
    list.push_back({.id = 32, .name = "LINES", .fallback = kCombineLines, .launch_only = true});
  return list;
}

Variant rows_variant(bool backward) {
  Variant variant = norm_variant(backward, deal_groups);
  variant.name = "rows";
  variant.idea = "a line of work-items keeps a row in registers between its sums and its output";
  variant.tunables = tunables(backward);
  variant.space = line_space;
  variant.local_bytes = [](const Problem&, const Config& config) -> std::uint64_t {
    return 16ULL * std::max(config.get("WG_X", 1) * config.get("WG_Y", 1),
                            kCombineColumns * combine_lines(config));
  };
  variant.rejects = [others = variant.rejects](const Problem& problem, const Config& config,
                                               const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_lines(config, profile)) return no;
    return others(problem, config, profile);
  };
  if (!backward) {
    Pass pass = forward_pass();
    pass.constants = line_constants;
    pass.opencl = {.file = "norms/rows/forward.cl", .entry = "norm_forward"};
    pass.vulkan = {.file = "norms/rows/forward.comp", .entry = "main"};
    pass.groups = line_groups;
    variant.passes = list_of(std::move(pass));
    return variant;
  }
  Pass pass = backward_pass(deal_groups);
  pass.constants = line_constants;
  pass.opencl = {.file = "norms/rows/backward.cl", .entry = "norm_backward"};
  pass.vulkan = {.file = "norms/rows/backward.comp", .entry = "main"};
  pass.groups = line_groups;
  variant.passes = list_of(std::move(pass));
  for (Pass& combine : combine_passes(deal_groups)) {
    const std::size_t slot = combine.bindings.back();
    combine.opencl = {.file = "norms/rows/combine.cl", .entry = "norm_combine"};
    combine.vulkan = {.file = "norms/rows/combine.comp", .entry = "main"};
    combine.specialized_on = std::vector<std::string>{};
    combine.group_size = [](const Config& config) {
      return Dim3{kCombineColumns, combine_lines(config)};
    };
    combine.groups = [slot](const Problem& problem, const Config& config) {
      if (!combines(problem, slot)) return Dim3{0, 0, 0};
      const abi::NormCombineArgs args =
          combine_arguments(problem, deal_groups(problem, config), slot);
      return Dim3{(args.dim + 4 * kCombineColumns - 1) / (4 * kCombineColumns),
                  static_cast<std::uint32_t>(std::min(args.rows, kMostGroups))};
    };
    variant.passes.push_back(std::move(combine));
  }
  return variant;
}

}  // namespace

Way rows_way(bool backward) {
  return {.variant = rows_variant(backward),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::norms
