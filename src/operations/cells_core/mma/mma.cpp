// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL: one launch for all steps forward, whose work-groups
// keep the weights of their units and meet behind each step; mma.sync multiplies.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/cells_core/layout.hpp"
#include "operations/cells_core/mma/args.h"
#include "operations/cells_core/mma/geometry.h"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

constexpr std::uint32_t kPatience = 20000;  // microseconds
constexpr const char *kTogether = "together", *kAlone = "alone";

std::vector<Tunable> tunables() {
  return {
#include "operations/cells_core/mma/mma.def"
      {.id = 30, .name = "TEAMS", .fallback = 1, .launch_only = true},
      {.id = 31, .name = "PATIENCE", .fallback = kPatience, .launch_only = true},
      {.id = 32, .name = "APART", .fallback = 0, .launch_only = true},
  };
}

// How a call is shared by work-groups.
struct Sharing {
  bool valid = false;
  std::uint32_t k_steps = 1, local_bytes = 0;
  std::uint32_t parts = 0, teams = 0, blocks = 0;
  std::uint64_t exchange = 0, flags = 0, census = 0, end = 0;  // in scratch, floats
  std::uint64_t groups(const CellProblem& call) const {
    return std::uint64_t{parts} * teams * static_cast<std::uint64_t>(call.directions);
  }
};

Sharing sharing_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
  const CellProblem& call = call_of(problem);
#include "kernel/tunable_locals.inc"
#include "operations/cells_core/mma/mma.def"
  if (WG_X < 32 || UNITS == 0 || BLOCK_ROWS == 0) return {};
  Sharing sharing;
  const Number CELL = kind_of(problem), K_STEPS = ceil_div(call.hidden, 16 * CELL_MMA_WARPS);
  if (!(CELL_MMA_VALID)) return {};
  sharing.valid = true;
  sharing.k_steps = K_STEPS;
  sharing.local_bytes = CELL_MMA_LOCAL_BYTES;
  sharing.parts = ceil_div(call.hidden, UNITS);
  const std::uint32_t blocks = std::max(ceil_div(call.batch, BLOCK_ROWS), 1U);
  sharing.blocks = ceil_div(blocks, std::clamp(config.get("TEAMS", 1), 1U, blocks));
  sharing.teams = ceil_div(blocks, sharing.blocks);
  const std::uint64_t teams =
      std::uint64_t{sharing.teams} * static_cast<std::uint64_t>(call.directions);
  sharing.exchange = layout_of(problem).end;
  sharing.flags = sharing.exchange + 2 * teams * sharing.blocks * CELL_MMA_BLOCK_WORDS;
  sharing.census = sharing.flags + (teams * sharing.parts + 31) / 32 * 32;
  sharing.end = sharing.census + CELL_CENSUS_WORDS;
  return sharing;
}

// Clocks of a step, roughly: a work-group reads what enters it at 24 bytes and multiplies 1000
// pairs of a clock.
double clocks_of(const Problem& problem, const Config& config) {
  const CellProblem& call = call_of(problem);
  const Sharing sharing = sharing_of(problem, config);
  const double rows = sharing.blocks * config.at("BLOCK_ROWS"),
               terms = static_cast<double>(call.hidden);
  return rows * terms * (2.0 / 24 + static_cast<double>(config.at("UNITS") * call.gates) / 1000);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const CellProblem& call = call_of(problem);
  if (call.projects) return "has no projections of h";
  if (call.has_reserve && call.hidden % 2 == 0 && kept_place(problem).first % 2 != 0)
    return "writes pairs of numbers to reserve, which begins at an odd element";
  if (config.get("APART", 0) > 1)
    return "keeps work-groups apart or not, and APART is " + std::to_string(config.get("APART", 0));
  const Sharing sharing = sharing_of(problem, config);
  if (!sharing.valid) return "has no such work-groups (operations/cells_core/mma/geometry.h)";
  if (sharing.local_bytes > kernel::nvidia_local_bytes(profile))
    return "needs " + std::to_string(sharing.local_bytes) +
           " bytes of work-group memory for weights and sums, and has " +
           std::to_string(kernel::nvidia_local_bytes(profile));
  const std::uint32_t units = kernel::compute_units_of(profile);
  if (sharing.groups(call) > units)
    return "wants " + std::to_string(sharing.groups(call)) +
           " work-groups to run at the same time, one on each of " + std::to_string(units) +
           " cores";
  if (sharing.end >= std::uint64_t{1} << 31)
    return "counts scratch memory to 2^31 floats, and the call takes more";
  return rejects_cells(problem, config, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const CellProblem& call = call_of(problem);
  const std::uint32_t cores = kernel::compute_units_of(profile);
  std::vector<Config> list;
  for (const std::uint32_t units : {16U, 8U}) {
    for (const std::uint32_t rows : {32U, 16U}) {
      const std::uint64_t of_a_team =
          std::uint64_t{ceil_div(call.hidden, units)} * static_cast<std::uint64_t>(call.directions);
      const auto teams = static_cast<std::uint32_t>(std::max<std::uint64_t>(cores / of_a_team, 1));
      Config config{{"WG_X", 256},    {"UNITS", units}, {"BLOCK_ROWS", rows},
                    {"TEAMS", teams}, {"ROWS", 4},      {"PATIENCE", kPatience}};
      if (!rejects(problem, config, profile)) list.push_back(std::move(config));
    }
  }
  std::ranges::stable_sort(list, {},
                           [&](const Config& config) { return clocks_of(problem, config); });
  if (list.empty())
    list.push_back({{"WG_X", 256},
                    {"UNITS", 16},
                    {"BLOCK_ROWS", 32},
                    {"TEAMS", 1},
                    {"ROWS", 4},
                    {"PATIENCE", kPatience}});
  return list;
}

std::vector<std::byte> team_arguments(const Problem& problem, const Config& config,
                                      const std::vector<std::byte>& first_step) {
  const Sharing sharing = sharing_of(problem, config);
  abi::CellTeamArgs args{};
  std::memcpy(&args.step, first_step.data(), sizeof(args.step));
  args.teams = sharing.teams;
  args.parts = sharing.parts;
  args.blocks = sharing.blocks;
  args.exchange = static_cast<abi::u32>(sharing.exchange);
  args.flags = static_cast<abi::u32>(sharing.flags);
  args.census = static_cast<abi::u32>(sharing.census);
  // Without patience no work-group waits for another.
  args.patience = config.get("APART", 0) != 0 ? 0 : config.get("PATIENCE", kPatience);
  return argument_bytes(args);
}

// Of the pass that does one step: all of them, by work-groups that run at the same time, or not.
Pass team_pass(const Pass& step, bool alone) {
  Pass pass = step;
  pass.name = alone ? kAlone : kTogether;
  pass.opencl = {.file = "cells/mma/forward.cl", .entry = "cells_mma_forward"};
  pass.axes = dtype_axes;
  pass.specialized_on = std::vector<std::string>{"CELL", "UNITS", "BLOCK_ROWS", "K_STEPS", "ALONE"};
  pass.constants = [alone](const Problem& problem, const Config& config) {
    return std::vector<Define>{{"CELL", kind_of(problem)},
                               {"K_STEPS", sharing_of(problem, config).k_steps},
                               {"ALONE", alone ? 1U : 0U}};
  };
  pass.groups = [alone](const Problem& problem, const Config& config) {
    const CellProblem& call = call_of(problem);
    const Sharing sharing = sharing_of(problem, config);
    if (call.batch == 0) return Dim3{0, 0, 0};
    const auto groups = static_cast<std::uint32_t>(sharing.groups(call));
    return Dim3{alone ? groups / sharing.parts : groups, 1, 1};
  };
  pass.args = [args = step.args](const Problem& problem, const Config& config) {
    return team_arguments(problem, config, args(problem, config));
  };
  return pass;
}

// Weights and states for the first step, and 0 where work-groups tell each other something.
Pass begin_pass(Pass pass) {
  pass.args = [args = pass.args](const Problem& problem, const Config& config) {
    std::vector<std::byte> bytes = args(problem, config);
    const Sharing sharing = sharing_of(problem, config);
    abi::CellBeginArgs begin{};
    std::memcpy(&begin, bytes.data(), sizeof(begin));
    begin.zeros = static_cast<abi::u32>(sharing.exchange);
    begin.zero_count = static_cast<abi::u32>(sharing.end - sharing.exchange);
    return argument_bytes(begin);
  };
  return pass;
}

std::vector<Pass> passes_of(const CellSlots& slots) {
  std::vector<Pass> passes;
  for (Pass& pass : cell_passes(slots, "cells/tile/", "cells_tile", false)) {
    if (pass.name == "begin") {
      passes.push_back(begin_pass(std::move(pass)));
    } else if (pass.name == "forward") {
      passes.push_back(team_pass(pass, false));
      passes.push_back(team_pass(pass, true));
    } else {
      if (pass.opencl.file != kBeginKernel) {
        pass.specialized_on = std::vector<std::string>{"ROWS", "CELL"};
        pass.group_size = [](const Config&) { return Dim3{CELL_LANES, 16, 1}; };
      }
      passes.push_back(std::move(pass));
    }
  }
  return passes;
}

bool prefers_mma(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kMmaSync) && problem.dtype != DType::kF32;
}

}  // namespace

Way mma_way(const CellSlots& slots) {
  Variant variant;
  variant.name = "mma";
  variant.idea =
      "one launch for all steps; work-groups keep weights and exchange h, mma.sync multiplies";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  variant.passes = passes_of(slots);
  variant.steps = [](const Problem& problem, const Config& config) {
    return cell_steps_with(problem, config,
                           {LaunchStep{.pass = kTogether}, LaunchStep{.pass = kAlone}});
  };
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return 4 * sharing_of(problem, config).end;
  };
  return {.variant = std::move(variant),
          .rule = {.why = "weights stay in the cores, and matrix instructions multiply",
                   .when = prefers_mma}};
}

}  // namespace tessera::operations::cells
