// SPDX-License-Identifier: Apache-2.0
// A launch for each token, whose work-items own a panel of units: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/cells_core/layout.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

// Sums in registers: of 32 vectors some hold the weights of a term and a factor. Narrower
// registers, of which there are 16, hold two rows of six such sums for a vector of 16.
std::uint32_t block_of(const CellProblem& call, bool wide) {
  if (!wide) return 6;
  const std::int64_t vectors = call.slots.backward() ? CELL_BACK_VECTORS : call.gates;
  return vectors == 4 ? 4 : vectors == 3 ? 8 : 12;
}

// Batch entries of a work-item that takes all steps of them, one behind the other, where there are
// enough of them for every core: a launch for each token takes 60 to 100 us longer than its work
// (EPYC, two cores, PoCL 3.1), while weights that are read once for 8 entries and more come from
// the third cache as fast as they are used.
constexpr std::int64_t kEntriesAlone = 8;
std::int64_t entries_of_core(const CellProblem& call, const DeviceProfile& profile) {
  const std::int64_t cores = std::max(profile.compute_units, 1U);
  return std::max(ceil_div(call.batch, ceil_div(cores, call.directions)), 1U);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<CellProblem>();
  const CellLayout layout = layout_of(problem);
  const std::int64_t panels =
      call.directions * (call.slots.backward() ? layout.backward : layout.forward).panels;
  const std::int64_t wanted = 4 * std::int64_t{std::max(profile.compute_units, 1U)};
  // Rows of a work-item share its panel; few panels leave cores without work.
  const std::int64_t splits = std::max<std::int64_t>(1, ceil_div(wanted, panels));
  const std::int64_t own = entries_of_core(call, profile);
  const bool wide = vector_width(profile) >= CELL_LANES, may_be_alone = !call.projects;
  std::vector<Config> list;
  const auto add = [&](std::uint32_t block, bool alone) {
    const std::int64_t rows =
        std::clamp<std::int64_t>(ceil_div(call.batch, splits * block) * block, block, 96);
    Config config{{"ROWS", static_cast<std::uint32_t>(alone ? own : rows)},
                  {"BLOCK", block},
                  {"AT_ONCE", wide ? 4U : 1U},
                  {"ALONE", alone ? 1U : 0U}};
    if (std::ranges::count(list, config) == 0) list.push_back(std::move(config));
  };
  const bool pays = may_be_alone && own >= kEntriesAlone;
  add(block_of(call, wide), pays);
  add(wide ? 6U : 4U, may_be_alone && !pays);
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t block = config.at("BLOCK");
  if (block == 0 || block > 16)
    return "holds the sums of 1 to 16 batch entries, and BLOCK is " + std::to_string(block);
  const std::uint32_t at_once = config.at("AT_ONCE");
  if (at_once != 1 && at_once != 4)
    return "holds the sums of 1 vector or of up to 4, and AT_ONCE is " + std::to_string(at_once);
  if (config.at("ALONE") != 0 && problem.as<CellProblem>().projects)
    return "takes projections by launches between steps, and ALONE is 1";
  return rejects_cells(problem, config, profile);
}

}  // namespace

Way cpu_way(const CellSlots& slots) {
  Variant variant;
  variant.name = "cpu";
  variant.idea =
      "work-items own panels of units, sums in registers; a launch for each token, or for all";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/cells_core/cpu/cpu.def"
  };
  variant.tunables.push_back({.id = 30, .name = "ROWS", .fallback = 32, .launch_only = true});
  variant.tunables.push_back({.id = 31, .name = "ALONE", .fallback = 0, .launch_only = true});
  variant.passes = cell_passes(slots, "cells/cpu/", "cells_cpu", false);
  for (Pass& pass : variant.passes) {
    if (pass.opencl.file == kBeginKernel) continue;
    const bool is_of_cell = static_cast<bool>(pass.constants);
    pass.constants = [is_of_cell](const Problem& problem, const Config&) {
      std::vector<Define> defines{{"VECTOR_WIDTH", CELL_LANES}};
      if (is_of_cell) defines.push_back({"CELL", kind_of(problem)});
      return defines;
    };
  }
  variant.steps = cell_steps;
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return 4 * layout_of(problem).end;
  };
  return {.variant = std::move(variant),
          .rule = {.why = "processors want whole vectors in one item, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::cells
