// SPDX-License-Identifier: Apache-2.0
// A launch for each token, whose work-groups own some units of some batch entries: any device.
#include <algorithm>
#include <string>

#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/cells_core/layout.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

std::int64_t vectors_of(const Problem& problem) {
  const auto& call = problem.as<CellProblem>();
  return call.slots.backward() ? CELL_BACK_VECTORS : call.gates;
}

std::uint64_t local_bytes(const Problem& problem, const Config& config) {
  return std::uint64_t{4} * CELL_LANES * config.get("WG_Y", 1) * config.at("ROWS") *
         static_cast<std::uint64_t>(vectors_of(problem));
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<CellProblem>();
  const auto make = [](std::uint32_t rows, std::uint32_t parts) {
    return Config{{"ROWS", rows}, {"WG_X", CELL_LANES}, {"WG_Y", parts}};
  };
  if (is_cpu(profile)) return {make(2, 2)};  // processors only check these kernels
  std::vector<Config> list;
  for (const auto& [rows, parts] : {std::pair{4U, 16U}, std::pair{8U, 16U}, std::pair{8U, 8U},
                                    std::pair{4U, 8U}, std::pair{2U, 16U}, std::pair{1U, 16U}}) {
    if (rows > 1 && rows / 2 >= call.batch) continue;
    Config config = make(rows, parts);
    const bool fits =
        (profile.local_memory == 0 || local_bytes(problem, config) <= profile.local_memory) &&
        (profile.max_group_size == 0 || CELL_LANES * parts <= profile.max_group_size);
    if (fits) list.push_back(std::move(config));
  }
  if (list.empty()) list.push_back(make(1, 4));
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (config.group().x != CELL_LANES)
    return "takes work-groups of 16 columns, and WG_X is " + std::to_string(config.group().x);
  return rejects_cells(problem, config, profile);
}

}  // namespace

Way tile_way(const CellSlots& slots) {
  Variant variant;
  variant.name = "tile";
  variant.idea = "a launch for each token; work-groups own units, and their items share the terms";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/cells_core/tile/tile.def"
  };
  variant.passes = cell_passes(slots, "cells/tile/", "cells_tile", true);
  variant.steps = cell_steps;
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return 4 * layout_of(problem).end;
  };
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::cells
