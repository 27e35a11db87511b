// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL: one launch for all steps, and one for those back,
// whose work-groups keep the weights of their units and meet behind each step; mma.sync multiplies.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/cells_core/layout.hpp"
#include "operations/cells_core/mma/args.h"
#include "operations/cells_core/mma/geometry.h"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

constexpr std::uint32_t kPatience = 20000;  // microseconds
constexpr std::uint32_t kItems = 256;
constexpr const char *kTogether = "_together", *kAlone = "_alone";  // behind names of passes

std::vector<Tunable> tunables() {
  return {
#include "operations/cells_core/mma/mma.def"
      {.id = 30, .name = "TEAMS", .fallback = 1, .launch_only = true},
      {.id = 31, .name = "PATIENCE", .fallback = kPatience, .launch_only = true},
      {.id = 32, .name = "APART", .fallback = 0, .launch_only = true},
      {.id = 33, .name = "BACK_TEAMS", .fallback = 1, .launch_only = true},
  };
}

// How steps of a call, or those back, are shared by work-groups.
struct Sharing {
  bool valid = false;
  std::uint32_t steps = 1;  // of a warp: K_STEPS or SIXTEENS
  std::uint32_t rows = 0, local_bytes = 0, block_words = 0;
  std::uint32_t parts = 0, teams = 0, blocks = 0;
  std::uint64_t exchange = 0, flags = 0, census = 0, end = 0;  // in scratch, floats
  std::uint64_t groups(const CellProblem& call) const {
    return std::uint64_t{parts} * teams * static_cast<std::uint64_t>(call.directions);
  }
};

Sharing geometry_of(const Problem& problem, const Config& config, bool backward) {
  using Number = std::uint32_t;
  const CellProblem& call = call_of(problem);
#include "kernel/tunable_locals.inc"
#include "operations/cells_core/mma/mma.def"
  if (WG_X < 32 || (backward ? BACK_UNITS : UNITS) == 0) return {};
  const Number CELL = kind_of(problem), K_STEPS = ceil_div(call.hidden, 16 * CELL_MMA_WARPS);
  if (backward) {
    const Number SIXTEENS = K_STEPS;
    return {.valid = CELL_BACK_VALID,
            .steps = SIXTEENS,
            .rows = BACK_ROWS,
            .local_bytes = CELL_BACK_LOCAL_BYTES,
            .block_words = CELL_BACK_BLOCK_WORDS,
            .parts = ceil_div(call.hidden, BACK_UNITS)};
  }
  return {.valid = CELL_MMA_VALID,
          .steps = K_STEPS,
          .rows = BLOCK_ROWS,
          .local_bytes = CELL_MMA_LOCAL_BYTES,
          .block_words = CELL_MMA_BLOCK_WORDS,
          .parts = ceil_div(call.hidden, UNITS)};
}

Sharing sharing_of(const Problem& problem, const Config& config, bool backward) {
  const CellProblem& call = call_of(problem);
  Sharing sharing = geometry_of(problem, config, backward);
  if (!sharing.valid) return {};
  const std::uint32_t blocks = std::max(ceil_div(call.batch, sharing.rows), 1U);
  const std::uint32_t teams_wanted = config.get(backward ? "BACK_TEAMS" : "TEAMS", 1);
  sharing.blocks = ceil_div(blocks, std::clamp(teams_wanted, 1U, blocks));
  sharing.teams = ceil_div(blocks, sharing.blocks);
  const std::uint64_t teams =
      std::uint64_t{sharing.teams} * static_cast<std::uint64_t>(call.directions);
  // What forward steps tell each other lies before that.
  sharing.exchange = backward && call.runs_forward() ? sharing_of(problem, config, false).end
                                                     : layout_of(problem).end;
  sharing.flags = sharing.exchange + 2 * teams * sharing.blocks * sharing.block_words;
  sharing.census = sharing.flags + (teams * sharing.parts + 31) / 32 * 32;
  sharing.end = sharing.census + CELL_CENSUS_WORDS;
  return sharing;
}

std::uint64_t elements_of_h(const CellProblem& call) {
  return static_cast<std::uint64_t>(call.rows() * call.directions * call.hidden);
}

// Behind what work-groups tell each other, in elements of the storage type; nothing where products
// would not reach it.
std::optional<std::uint64_t> rounded_h(const Problem& problem, const Config& config) {
  const CellProblem& call = call_of(problem);
  if (!call.slots.backward() || !problem.has(call.slots.grad_weight_hh)) return std::nullopt;
  const std::uint64_t first = 2 * sharing_of(problem, config, true).end;
  if (first + elements_of_h(call) >= std::uint64_t{1} << 31) return std::nullopt;
  return first;
}

std::uint64_t scratch_floats(const Problem& problem, const Config& config) {
  const CellProblem& call = call_of(problem);
  if (const auto first = rounded_h(problem, config)) return (*first + elements_of_h(call) + 1) / 2;
  return sharing_of(problem, config, call.slots.backward()).end;
}

// The launches of all steps that a call has: back, forward, or both.
std::vector<bool> directions_of(const CellProblem& call) {
  std::vector<bool> list;
  if (call.runs_forward()) list.push_back(false);
  if (call.slots.backward()) list.push_back(true);
  return list;
}

// Clocks of a step, roughly: a work-group reads what enters it at 24 bytes and multiplies 1000
// pairs of a clock.
double clocks_of(const Problem& problem, const Config& config, bool backward) {
  const CellProblem& call = call_of(problem);
  const Sharing sharing = sharing_of(problem, config, backward);
  const std::int64_t terms = backward ? call.gates * call.hidden : call.hidden;
  const double columns =
      backward ? config.at("BACK_UNITS") : static_cast<double>(config.at("UNITS") * call.gates);
  return static_cast<double>(sharing.blocks * sharing.rows) * static_cast<double>(terms) *
         (2.0 / 24 + columns / 1000);
}

Refusal rejects_sharing(const Problem& problem, const Config& config, const DeviceProfile& profile,
                        bool backward) {
  const CellProblem& call = call_of(problem);
  const Sharing sharing = sharing_of(problem, config, backward);
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
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const CellProblem& call = call_of(problem);
  if (call.projects) return "has no projections of h";
  if (call.has_reserve && call.hidden % 2 == 0 && kept_place(problem).first % 2 != 0)
    return "writes pairs of numbers to reserve, which begins at an odd element";
  if (config.get("APART", 0) > 1)
    return "keeps work-groups apart or not, and APART is " + std::to_string(config.get("APART", 0));
  for (const bool backward : directions_of(call)) {
    if (Refusal no = rejects_sharing(problem, config, profile, backward)) return no;
  }
  return rejects_cells(problem, config, profile);
}

// Weights that local memory does not hold go to registers.
void hold_weights(const Problem& problem, Config& config, const DeviceProfile& profile) {
  for (std::uint32_t held = 0;; ++held) {
    config.set("HELD", held);
    const Sharing sharing = geometry_of(problem, config, true);
    if (!sharing.valid || sharing.local_bytes <= kernel::nvidia_local_bytes(profile)) return;
  }
}

// A configuration with the tunables of one of both launches, the fastest first; of those that are
// refused one, if all are.
std::vector<Config> varied(const Problem& problem, const Config& from, const DeviceProfile& profile,
                           bool backward) {
  const CellProblem& call = call_of(problem);
  const std::uint32_t cores = kernel::compute_units_of(profile);
  std::vector<Config> list;
  for (const std::uint32_t units : {backward ? 32U : 16U, backward ? 16U : 8U}) {
    for (const std::uint32_t rows : {32U, 16U}) {
      const std::uint64_t of_a_team =
          std::uint64_t{ceil_div(call.hidden, units)} * static_cast<std::uint64_t>(call.directions);
      const auto teams = static_cast<std::uint32_t>(std::max<std::uint64_t>(cores / of_a_team, 1));
      Config config = from;
      config.set(backward ? "BACK_UNITS" : "UNITS", units);
      config.set(backward ? "BACK_ROWS" : "BLOCK_ROWS", rows);
      config.set(backward ? "BACK_TEAMS" : "TEAMS", teams);
      if (backward) {
        // Twelve fragments of factors; of fewer than two sixteens ptxas spills.
        const auto gates = static_cast<std::uint32_t>(call.gates);
        config.set("AHEAD", std::max(12 * 16 / (rows * gates), 2U));
        hold_weights(problem, config, profile);
      }
      list.push_back(std::move(config));
    }
  }
  const Config refused = list.back();
  std::erase_if(list, [&](const Config& config) {
    return rejects_sharing(problem, config, profile, backward).has_value();
  });
  if (list.empty()) return {refused};
  kernel::sort_configs(list,
                       [&](const Config& config) { return clocks_of(problem, config, backward); });
  return list;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list{{{"WG_X", kItems}, {"PATIENCE", kPatience}}};
  for (const bool backward : directions_of(call_of(problem)))
    list = varied(problem, list.front(), profile, backward);
  return list;
}

std::vector<std::byte> team_arguments(const Problem& problem, const Config& config,
                                      const std::vector<std::byte>& first_step, bool backward) {
  const Sharing sharing = sharing_of(problem, config, backward);
  abi::CellTeamArgs args{};
  std::memcpy(&args.step, first_step.data(), sizeof(args.step));
  args.teams = sharing.teams;
  args.parts = sharing.parts;
  args.blocks = sharing.blocks;
  args.exchange = static_cast<abi::u32>(sharing.exchange);
  args.flags = static_cast<abi::u32>(sharing.flags);
  args.census = static_cast<abi::u32>(sharing.census);
  if (backward) args.rounded = static_cast<abi::u32>(rounded_h(problem, config).value_or(0));
  // Without patience no work-group waits for another.
  args.patience = config.get("APART", 0) != 0 ? 0 : config.get("PATIENCE", kPatience);
  return argument_bytes(args);
}

// Of the pass that does one step: all of them, by work-groups that run at the same time, or not.
Pass team_pass(const Pass& step, bool backward, bool alone) {
  Pass pass = step;
  pass.name += alone ? kAlone : kTogether;
  pass.opencl = {.file = backward ? "cells/mma/backward.cl" : "cells/mma/forward.cl",
                 .entry = backward ? "cells_mma_backward" : "cells_mma_forward"};
  pass.axes = dtype_axes;
  pass.specialized_on =
      backward ? std::vector<std::string>{"CELL", "BACK_UNITS", "BACK_ROWS", "SIXTEENS",
                                          "HELD", "AHEAD",      "ALONE"}
               : std::vector<std::string>{"CELL", "UNITS", "BLOCK_ROWS", "K_STEPS", "ALONE"};
  pass.constants = [backward, alone](const Problem& problem, const Config& config) {
    return std::vector<Define>{
        {"CELL", kind_of(problem)},
        {backward ? "SIXTEENS" : "K_STEPS", sharing_of(problem, config, backward).steps},
        {"ALONE", alone ? 1U : 0U}};
  };
  pass.groups = [backward, alone](const Problem& problem, const Config& config) {
    const CellProblem& call = call_of(problem);
    const Sharing sharing = sharing_of(problem, config, backward);
    if (call.batch == 0) return Dim3{0, 0, 0};
    const auto groups = static_cast<std::uint32_t>(sharing.groups(call));
    return Dim3{alone ? groups / sharing.parts : groups, 1, 1};
  };
  pass.args = [backward, args = step.args](const Problem& problem, const Config& config) {
    return team_arguments(problem, config, args(problem, config), backward);
  };
  return pass;
}

// Weights and states for the first step, and 0 where work-groups tell each other something.
Pass begin_pass(Pass pass, bool backward) {
  pass.args = [backward, args = pass.args](const Problem& problem, const Config& config) {
    std::vector<std::byte> bytes = args(problem, config);
    const Sharing sharing = sharing_of(problem, config, backward);
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
    const bool backward = pass.name.find("backward") != std::string::npos;
    if (pass.name.starts_with("begin")) {
      passes.push_back(begin_pass(std::move(pass), backward));
    } else if (pass.name.starts_with("forward") || pass.name.starts_with("backward")) {
      for (const bool alone : {false, true}) passes.push_back(team_pass(pass, backward, alone));
    }
  }
  return passes;
}

// Both passes of a direction: which of them does something, work-groups find out.
std::vector<Step> launches(const std::string& pass) {
  return {LaunchStep{.pass = pass + kTogether}, LaunchStep{.pass = pass + kAlone}};
}

bool prefers_mma(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kMmaSync) && problem.dtype != DType::kF32;
}

}  // namespace

Way mma_way(const CellSlots& slots) {
  Variant variant;
  variant.name = "mma";
  variant.idea =
      "one launch for all steps; work-groups keep weights and exchange factors, mma.sync "
      "multiplies";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  variant.passes = passes_of(slots);
  variant.steps = [](const Problem& problem, const Config& config) {
    const bool has_reserve = call_of(problem).has_reserve;
    return cell_steps_with(problem, launches("forward"),
                           launches(has_reserve ? "backward_of_reserve" : "backward"),
                           rounded_h(problem, config));
  };
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return 4 * scratch_floats(problem, config);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "weights stay in the cores, and matrix instructions multiply",
                   .when = prefers_mma}};
}

}  // namespace tessera::operations::cells
