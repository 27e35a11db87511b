// SPDX-License-Identifier: Apache-2.0
// Matrix units through Vulkan, of any vendor: what chunks make of an empty state, the states before
// them, and their outputs, each of all chunks at once. What matrices can't take goes step by step.
#include "operations/recurrence_core/cooperative/cooperative.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/vendor_ids.hpp"
#include "kernel/matrices.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/tile.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kLeastTokens = 64;
constexpr std::uint32_t kCarryItems = 64;

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// STEP_…: what tile's kernel takes sequences with that are marked.
std::vector<Tunable> tunables() {
  return {
#include "operations/recurrence_core/cooperative/cooperative.def"
      {.id = 3, .name = "STEP_ROWS", .fallback = 8},
      {.id = 4, .name = "STEP_TOKENS", .fallback = 4},
      {.id = 30, .name = "STEP_X", .fallback = 8, .launch_only = true},
      {.id = 31, .name = "STEP_Y", .fallback = 16, .launch_only = true},
  };
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  const std::size_t decays = key_decays(problem);
  const bool wide = decays != kNoOperand && problem.spec(decays).dtype == DType::kF32;
  return {{"KEY_DIM", static_cast<std::uint32_t>(call_of(problem).key_dim)},
          {"VALUE_DIM", static_cast<std::uint32_t>(call_of(problem).value_dim)},
          {"KEY_DECAYS", decays != kNoOperand ? 1U : 0U},
          {"WIDE_DECAYS", wide ? 1U : 0U}};
}

// Of a work-group; 0 where the kernels have no such geometry.
std::uint64_t local_bytes_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/cooperative/cooperative.def"
  const auto KEY_DIM = static_cast<Number>(call_of(problem).key_dim),
             VALUE_DIM = static_cast<Number>(call_of(problem).value_dim),
             KEY_DECAYS = key_decays(problem) != kNoOperand ? 1U : 0U;
  if (!(RECUR_COOP_DIVISORS) || !(RECUR_COOP_VALID)) return 0;
  return std::max<std::uint64_t>(RECUR_COOP_STATES_BYTES, RECUR_COOP_OUTPUTS_BYTES);
}

CooperativeScratch scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  CooperativeScratch scratch;
  scratch.states = scratch.add(4 * chunks * call.key_dim * call.value_dim);
  scratch.kept = scratch.add(2 * chunks * call.key_dim * call.value_dim);
  scratch.factors = scratch.add(4 * chunks * call.key_dim);
  scratch.add_last(problem, config);
  return scratch;
}

std::uint64_t bytes_before_boundaries(const Problem& problem, const Config& config) {
  return scratch_of(problem, config).end;
}

abi::RecurArgs arguments(const Problem& problem, const Config& config) {
  return cooperative_arguments(problem, config, scratch_of(problem, config));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  const RecurrenceSlots& slots = call.slots;
  return rejects_cooperative(problem, config, profile,
                             {.rows = {slots.query, slots.key, slots.value, slots.output},
                              .local_bytes = local_bytes_of(problem, config),
                              .scratch_bytes = bytes_before_boundaries(problem, config),
                              .rounds = call.tokens * 24});
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return cooperative_configs(problem, profile,
                             {.part = RECUR_COOP_PART,
                              .most_tokens = 64,
                              .least_items = 1,
                              .rejects = rejects,
                              .local_bytes = local_bytes_of});
}

// A pass of recurrence/tile, of sequences that are marked only.
void take_marked(Pass& pass) {
  pass.opencl = {};
  if (!pass.group_size) {
    pass.specialized_on = std::vector<std::string>{"STEP_ROWS", "STEP_TOKENS"};
    pass.group_size = [](const Config& config) {
      return Dim3{config.at("STEP_X"), config.at("STEP_Y")};
    };
  }
  pass.specialized_on->push_back("MARKED");
  pass.constants = [](const Problem&, const Config&) -> std::vector<Define> {
    return {{"MARKED", 1}};
  };
}

}  // namespace

std::int64_t cooperative_chunks(const RecurrenceProblem& call, const Config& config) {
  return call.batch * call.tokens / config.at("TOKENS") + call.sequences;
}

std::uint64_t CooperativeScratch::add(std::int64_t bytes) {
  const std::uint64_t begin = end;
  end += (static_cast<std::uint64_t>(bytes) + 15) / 16 * 16;
  return begin;
}

void CooperativeScratch::add_last(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t units = call.sequences * call.heads;
  last = add(4 * units * call.key_dim * call.value_dim);
  chunk_marks = add(4 * cooperative_chunks(call, config) * call.heads);
  add(4 * units);  // RECUR_MARK_PLACE
}

abi::RecurArgs cooperative_arguments(const Problem& problem, const Config& config,
                                     const CooperativeScratch& scratch) {
  const auto narrow = [](std::uint64_t number) { return static_cast<abi::u32>(number); };
  abi::RecurArgs args = arguments_of(problem);
  args.segment = static_cast<abi::u32>(cooperative_chunks(call_of(problem), config));
  args.span_states = narrow(scratch.states / 16);
  args.kept = narrow(scratch.kept / 16);
  args.span_factors = narrow(scratch.factors / 4);
  args.tiles = narrow(scratch.last / 16);
  args.inner = narrow(scratch.chunk_marks / 4);
  args.boundaries = narrow(scratch.end / 4);
  return args;
}

Refusal rejects_cooperative(const Problem& problem, const Config& config,
                            const DeviceProfile& profile, const CooperativeNeeds& needs) {
  if (Refusal no = rejects_chunks_by_matrices(problem)) return no;
  const auto lies_by_eights = [&](std::size_t slot) {
    if (!problem.has(slot)) return true;
    const auto by_eights = [](std::int64_t number) { return number % 8 == 0; };
    const TensorSpec& spec = problem.spec(slot);
    return by_eights(spec.offset) &&
           std::all_of(spec.strides.begin(), spec.strides.end() - 1, by_eights);
  };
  if (!std::ranges::all_of(needs.rows, lies_by_eights) || !lies_by_eights(key_decays(problem)))
    return "takes rows that lie at multiples of eight elements";
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  if (needs.local_bytes == 0)
    return "has a work-group that does not divide into matrices "
           "(operations/recurrence_core/cooperative/geometry.h)";
  if (needs.scratch_bytes >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  if (Refusal no = rejects_rounds(needs.rounds, profile)) return no;
  return rejects_recurrence(problem, profile);
}

std::vector<Config> cooperative_configs(const Problem& problem, const DeviceProfile& profile,
                                        const CooperativeSpace& space) {
  std::vector<Config> list;
  const std::uint32_t lanes = profile.subgroup_size;
  if (lanes == 0) return list;
  const Config step = first_tile_config(problem, profile);
  // Processors, which take one program for all key dims, share sums of no more than there are.
  const auto parts = static_cast<std::uint64_t>(
      std::max<std::int64_t>(ceil_div(call_of(problem).key_dim, step.at("ROWS")), 16));
  const auto step_y = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(step.group().y, kernel::next_power_of_two(parts)));
  for (std::uint32_t tokens = space.most_tokens; tokens >= 16; tokens /= 2) {
    for (const MatrixShape& shape : profile.matrix_shapes) {
      // An item for each part of eight key dims, and two sub-groups for sixteen tokens.
      const std::int64_t items = call_of(problem).key_dim / 8 * (tokens / space.part);
      const std::uint32_t groups =
          std::max(ceil_div(std::max(items, space.least_items), lanes), 2 * (tokens / 16));
      const Config config{{"TOKENS", tokens},
                          {"LANES", lanes},
                          {"MATRIX_M", shape.m},
                          {"MATRIX_N", shape.n},
                          {"MATRIX_K", shape.k},
                          {"AHEAD", 0},
                          {"WG_X", groups * lanes},
                          {"STEP_ROWS", step.at("ROWS")},
                          {"STEP_TOKENS", step.at("TOKENS")},
                          {"STEP_X", step.group().x},
                          {"STEP_Y", step_y}};
      if (config.group().x <= profile.max_group_size && !space.rejects(problem, config, profile) &&
          space.local_bytes(problem, config) <= profile.local_memory)
        list.push_back(config);
    }
  }
  return list;
}

Pass cooperative_pass(const std::string& name, std::vector<std::size_t> bindings,
                      CooperativeArguments arguments) {
  Pass pass;
  pass.name = name;
  pass.vulkan = {.file = "recurrence/cooperative/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = dtype_axes;
  pass.specialized_on =
      std::vector<std::string>{"TOKENS",  "LANES",     "MATRIX_M",   "MATRIX_N",   "MATRIX_K",
                               "KEY_DIM", "VALUE_DIM", "KEY_DECAYS", "WIDE_DECAYS"};
  pass.constants = constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(cooperative_chunks(call_of(problem), config) * call_of(problem).heads);
  };
  pass.args = [arguments](const Problem& problem, const Config& config) {
    return argument_bytes(arguments(problem, config));
  };
  return pass;
}

void go_back(Pass& pass) {
  pass.specialized_on->push_back("GOES_BACK");
  pass.constants = [constants = pass.constants](const Problem& problem, const Config& config) {
    std::vector<Define> list = constants(problem, config);
    list.push_back({"GOES_BACK", 1});
    return list;
  };
}

Pass cooperative_states_pass(const std::string& name, std::vector<std::size_t> bindings,
                             CooperativeArguments arguments, std::int64_t elements) {
  Pass pass = cooperative_pass(name, std::move(bindings), arguments);
  pass.specialized_on = std::vector<std::string>{"TOKENS", "KEY_DIM", "VALUE_DIM"};
  pass.group_size = [](const Config&) { return Dim3{kCarryItems}; };
  pass.groups = [elements](const Problem& problem, const Config&) {
    const RecurrenceProblem& call = call_of(problem);
    return groups_of(call.sequences * call.heads *
                     ceil_div(call.key_dim * call.value_dim, elements * kCarryItems));
  };
  return pass;
}

Pass cooperative_steps_pass(const RecurrenceSlots& slots, CooperativeArguments arguments) {
  Pass pass = tile_forward_pass(slots);
  pass.name = "steps";
  take_marked(pass);
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(call_of(problem), std::int64_t{4} * config.at("STEP_X")));
  };
  pass.args = [arguments](const Problem& problem, const Config& config) {
    return argument_bytes(arguments(problem, config));
  };
  return pass;
}

Config cooperative_step_config(const Problem& problem, const Config& config) {
  // About as many tokens as there are segments of a sequence, for scratch has states of both.
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t sequences = std::max<std::int64_t>(call.packed ? call.sequences : 1, 1);
  const std::uint32_t tokens = std::max(config.at("STEP_TOKENS"), 1U);
  std::uint32_t segment = tokens * ceil_div(8, tokens);  // of whole blocks of so many
  while (segment < 64 && segment * segment < call.tokens / sequences) segment *= 2;
  return {{"ROWS", config.at("STEP_ROWS")},
          {"TOKENS", config.at("STEP_TOKENS")},
          {"WG_X", config.at("STEP_X")},
          {"WG_Y", config.at("STEP_Y")},
          {"SEGMENT", segment},
          {"SPANS", 1}};
}

std::vector<Pass> cooperative_gradient_steps(const RecurrenceSlots& slots,
                                             CooperativeArguments arguments) {
  std::vector<Pass> passes = tile_gradient_passes(slots);
  passes.push_back(tile_combine_pass(slots));
  for (Pass& pass : passes) {
    pass.name = "step_" + pass.name;
    take_marked(pass);
    pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
      return groups(problem, cooperative_step_config(problem, config));
    };
    pass.args = [arguments](const Problem& problem, const Config& config) {
      return argument_bytes(arguments(problem, config));
    };
  }
  return passes;
}

Pass cooperative_final_pass(const RecurrenceSlots& slots, CooperativeArguments arguments) {
  Pass pass = cooperative_states_pass("final", cooperative_bindings(slots), arguments, 1);
  pass.axes = {};
  pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
    // Those of the call: a state that is changed in place stands for both of its kinds.
    const RecurrenceSlots& its = call_of(problem).slots;
    const std::size_t last = its.backward() ? its.grad_initial_state : its.final_state;
    return problem.has(last) ? groups(problem, config) : Dim3{0, 0, 0};
  };
  return pass;
}

std::vector<std::size_t> cooperative_bindings(const RecurrenceSlots& slots) {
  return {slots.query, slots.key,           slots.value,  slots.g,           slots.gamma,
          slots.gk,    slots.initial_state, slots.output, slots.final_state, kScratch};
}

Way cooperative_way_of(Variant variant) {
  variant.name = "cooperative";
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  const auto space = variant.space;
  // By Mesa's compiler for Intel a part of a chunk is more than an item's registers hold.
  const auto prefers = [space](const Problem& problem, const DeviceProfile& profile) {
    const RecurrenceProblem& call = call_of(problem);
    const std::int64_t sequences = std::max<std::int64_t>(call.packed ? call.sequences : 1, 1);
    return profile.backend == Backend::kVulkan && is_gpu(profile) &&
           profile.vendor_id != kVendorIntel && call.tokens / sequences >= kLeastTokens &&
           !space(problem, profile).empty();
  };
  return Way{.variant = std::move(variant),
             .rule = {.why = "the device's matrix unit, for chunks of tokens", .when = prefers}};
}

std::optional<Way> cooperative_way(const RecurrenceSlots& slots) {
  if (slots.delta())
    return slots.backward() ? cooperative_delta_backward_way(slots) : cooperative_delta_way(slots);
  if (slots.backward()) return cooperative_backward_way(slots);
  Variant variant;
  variant.idea = "states and outputs of all chunks at once by cooperative matrices";
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes_of;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return bytes_before_boundaries(problem, config) + boundaries_bytes(problem);
  };
  const std::vector<std::size_t> bindings = cooperative_bindings(slots);
  variant.passes =
      list_of(boundaries_pass(slots, bytes_before_boundaries),
              cooperative_pass("states", bindings, arguments),
              cooperative_states_pass("carry", bindings, arguments, 4),
              cooperative_pass("outputs", bindings, arguments),
              cooperative_steps_pass(slots, arguments), cooperative_final_pass(slots, arguments));
  return cooperative_way_of(std::move(variant));
}

}  // namespace tessera::operations::recurrence
