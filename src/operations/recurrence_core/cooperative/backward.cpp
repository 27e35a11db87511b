// SPDX-License-Identifier: Apache-2.0
// Gradients by matrix units through Vulkan: the states before all chunks, the gradients of those
// behind them, and then each chunk by itself. What matrices can't take goes step by step, in the
// scratch memory that chunks have had.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cooperative/cooperative.hpp"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/tile.hpp"

namespace tessera::operations::recurrence {
namespace {

// Work-groups of 512 items for 64 tokens spill by Mesa's compiler for RDNA 3, and need more local
// memory than most GPUs have where rows are long.
constexpr std::uint32_t kMostTokens = 32;

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of a work-group; 0 where the kernels have no such geometry.
std::uint64_t local_bytes_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/cooperative/cooperative.def"
  const auto KEY_DIM = static_cast<Number>(call_of(problem).key_dim),
             VALUE_DIM = static_cast<Number>(call_of(problem).value_dim),
             KEY_DECAYS = key_decays(problem) != kNoOperand ? 1U : 0U;
  if (!(RECUR_COOP_DIVISORS) || !(RECUR_COOP_VALID) || !(RECUR_COOP_GRADIENTS_VALID)) return 0;
  return std::max<std::uint64_t>(RECUR_COOP_STATES_BYTES, RECUR_COOP_GRADIENTS_BYTES);
}

// How recurrence/tile takes sequences that are marked.
Config step_config(const Config& config) {
  return {{"ROWS", config.at("STEP_ROWS")},
          {"TOKENS", config.at("STEP_TOKENS")},
          {"WG_X", config.at("STEP_X")},
          {"WG_Y", config.at("STEP_Y")},
          {"SEGMENT", 64},
          {"SPANS", 1}};
}

// Where things begin in scratch, in bytes. `common` is behind what steps take in place of all that
// comes before it.
struct ChunkScratch {
  std::uint64_t states = 0, kept = 0, gradients = 0, common = 0;
  std::uint64_t factors = 0, last = 0, sums = 0, chunk_marks = 0, end = 0;
};

ChunkScratch chunk_scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  ChunkScratch scratch;
  const auto add = [&](std::int64_t bytes) {
    const std::uint64_t begin = scratch.end;
    scratch.end += (static_cast<std::uint64_t>(bytes) + 15) / 16 * 16;
    return begin;
  };
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  const std::int64_t state = call.key_dim * call.value_dim, units = call.sequences * call.heads;
  scratch.states = add(4 * chunks * state);
  scratch.kept = add(2 * chunks * state);
  scratch.gradients = add(2 * chunks * state);
  scratch.end = std::max(scratch.end, scratch_of(problem, step_config(config)).bytes());
  scratch.common = scratch.end;
  scratch.factors = add(4 * chunks * call.key_dim);
  scratch.last = add(4 * units * state);
  scratch.sums = add(wants(problem, RECUR_GRAD_DECAY) ? 4 * rows_of(call) : 0);
  scratch.chunk_marks = add(4 * chunks);
  add(4 * units);  // RECUR_MARK_PLACE
  return scratch;
}

std::uint64_t bytes_before_boundaries(const Problem& problem, const Config& config) {
  return chunk_scratch_of(problem, config).end;
}

void add_common(const ChunkScratch& scratch, abi::RecurArgs& args) {
  args.sums = static_cast<abi::u32>(scratch.sums / 16);
  args.boundaries = static_cast<abi::u32>(scratch.end / 4);
}

// Of chunks, and of the states before them.
abi::RecurArgs arguments(const Problem& problem, const Config& config) {
  const ChunkScratch scratch = chunk_scratch_of(problem, config);
  const auto narrow = [](std::uint64_t number) { return static_cast<abi::u32>(number); };
  abi::RecurArgs args = arguments_of(problem);
  args.segment = static_cast<abi::u32>(cooperative_chunks(call_of(problem), config));
  args.span_states = narrow(scratch.states / 16);
  args.kept = narrow(scratch.kept / 16);
  args.dstates = narrow(scratch.gradients / 16);
  args.span_factors = narrow(scratch.factors / 4);
  args.tiles = narrow(scratch.last / 16);
  args.inner = narrow(scratch.chunk_marks / 4);
  add_common(scratch, args);
  return args;
}

// Of the gradients of states: queries and gradients of outputs stand for keys and values, and the
// state begins as the gradient of the last one.
abi::RecurArgs back_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = arguments(problem, config);
  const bool given = (args.features & RECUR_FINAL) != 0;
  args.features = (args.features & ~RECUR_INITIAL) | (given ? RECUR_INITIAL : 0U);
  args.kept = args.dstates;
  args.key = args.query;
  args.value = args.result;
  args.initial_state = args.final_state;
  args.final_state = args.dinitial;
  return args;
}

abi::RecurArgs step_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = tile_backward_arguments(problem, step_config(config));
  add_common(chunk_scratch_of(problem, config), args);
  return args;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  const RecurrenceSlots& slots = call.slots;
  std::vector<std::size_t> rows{slots.query,       slots.key,        slots.value,
                                slots.grad_output, slots.grad_query, slots.grad_key,
                                slots.grad_value};
  if (problem.has(slots.gk)) rows.push_back(slots.grad_gk);
  if (call.key_gate) rows.push_back(slots.grad_g);
  if (Refusal no = rejects_cooperative(problem, config, profile, rows)) return no;
  if (local_bytes_of(problem, config) == 0)
    return "has a work-group that does not divide into matrices "
           "(operations/recurrence_core/cooperative/geometry.h)";
  if (chunk_scratch_of(problem, config).end >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  const std::int64_t step = 15 + config.at("STEP_X") + config.at("STEP_Y");
  if (Refusal no = rejects_rounds(call.tokens * std::max<std::int64_t>(step, 24), profile))
    return no;
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return cooperative_configs(problem, profile,
                             {.part = RECUR_COOP_GRADIENT_PART,
                              .most_tokens = kMostTokens,
                              .least_items = 1,
                              .rejects = rejects,
                              .local_bytes = local_bytes_of});
}

// The same pass over gradients of states.
Pass back_pass(const RecurrenceSlots& slots, Pass pass) {
  pass.name = "back_" + pass.name;
  pass.bindings = {slots.query,
                   slots.query,
                   slots.grad_output,
                   slots.g,
                   slots.gamma,
                   slots.gk,
                   slots.grad_final_state,
                   kNoOperand,
                   slots.grad_initial_state,
                   kScratch};
  pass.specialized_on->push_back("GOES_BACK");
  pass.constants = [constants = pass.constants](const Problem& problem, const Config& config) {
    std::vector<Define> list = constants(problem, config);
    list.push_back({"GOES_BACK", 1});
    return list;
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(back_arguments(problem, config));
  };
  return pass;
}

Pass step_pass(Pass pass) {
  pass.name = "step_" + pass.name;
  pass.opencl = {};
  if (!pass.group_size) {
    pass.specialized_on = std::vector<std::string>{"STEP_ROWS", "STEP_TOKENS"};
    pass.group_size = [](const Config& config) {
      return Dim3{config.at("STEP_X"), config.at("STEP_Y")};
    };
  }
  take_marked(pass);
  pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
    return groups(problem, step_config(config));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(step_arguments(problem, config));
  };
  return pass;
}

std::vector<Pass> passes_of(const RecurrenceSlots& slots) {
  const std::vector<std::size_t> bindings = cooperative_bindings(slots);
  const Pass states = cooperative_pass("states", bindings, arguments),
             carry = cooperative_states_pass("carry", bindings, arguments, 4);
  Pass gradients = cooperative_pass(
      "gradients",
      {slots.query, slots.key, slots.value, slots.g, slots.gamma, slots.gk, slots.grad_output,
       slots.grad_query, slots.grad_key, kScratch, slots.grad_value, slots.grad_g, slots.grad_gk},
      arguments);
  std::vector<Pass> passes{boundaries_pass(slots, bytes_before_boundaries),
                           states,
                           carry,
                           back_pass(slots, states),
                           back_pass(slots, carry),
                           std::move(gradients),
                           back_pass(slots, cooperative_final_pass(slots, arguments))};
  for (Pass& pass : tile_gradient_passes(slots)) passes.push_back(step_pass(std::move(pass)));
  passes.push_back(step_pass(tile_combine_pass(slots)));
  passes.push_back(tile_gamma_pass(slots, [](const Problem& problem, const Config& config) {
    return argument_bytes(step_arguments(problem, config));
  }));
  passes.back().opencl = {};
  return passes;
}

}  // namespace

std::optional<Way> cooperative_backward_way(const RecurrenceSlots& slots) {
  Variant variant;
  variant.idea = "states of all chunks and their gradients by cooperative matrices, then chunks";
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes_of;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return bytes_before_boundaries(problem, config) + boundaries_bytes(problem);
  };
  variant.passes = passes_of(slots);
  return cooperative_way_of(std::move(variant));
}

}  // namespace tessera::operations::recurrence
