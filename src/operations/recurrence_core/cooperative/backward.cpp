// SPDX-License-Identifier: Apache-2.0
// Gradients by matrix units through Vulkan: the states before all chunks, the gradients of those
// behind them, and then each chunk by itself. What matrices can't take goes step by step, in the
// scratch memory that chunks have had.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernel/tunable_list.inc"
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

struct ChunkScratch : CooperativeScratch {
  std::uint64_t gradients = 0, sums = 0;
};

ChunkScratch chunk_scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  const std::int64_t state = call.key_dim * call.value_dim;
  ChunkScratch scratch;
  scratch.states = scratch.add(4 * chunks * state);
  scratch.kept = scratch.add(2 * chunks * state);
  scratch.gradients = scratch.add(2 * chunks * state);
  // Steps take the place of all that, not of what comes behind.
  scratch.end =
      std::max(scratch.end, scratch_of(problem, cooperative_step_config(problem, config)).bytes());
  scratch.factors = scratch.add(4 * chunks * call.key_dim);
  scratch.sums = scratch.add(wants(problem, RECUR_GRAD_DECAY) ? 4 * rows_of(call) : 0);
  scratch.add_last(problem, config);
  return scratch;
}

std::uint64_t bytes_before_boundaries(const Problem& problem, const Config& config) {
  return chunk_scratch_of(problem, config).end;
}

// Of chunks, and of the states before them.
abi::RecurArgs arguments(const Problem& problem, const Config& config) {
  const ChunkScratch scratch = chunk_scratch_of(problem, config);
  abi::RecurArgs args = cooperative_arguments(problem, config, scratch);
  args.dstates = static_cast<abi::u32>(scratch.gradients / 16);
  args.sums = static_cast<abi::u32>(scratch.sums / 16);
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
  const ChunkScratch scratch = chunk_scratch_of(problem, config);
  abi::RecurArgs args = tile_backward_arguments(problem, cooperative_step_config(problem, config));
  args.sums = static_cast<abi::u32>(scratch.sums / 16);
  args.boundaries = static_cast<abi::u32>(scratch.end / 4);
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
  const std::int64_t step = 15 + config.at("STEP_X") + config.at("STEP_Y");
  return rejects_cooperative(problem, config, profile,
                             {.rows = std::move(rows),
                              .local_bytes = local_bytes_of(problem, config),
                              .scratch_bytes = bytes_before_boundaries(problem, config),
                              .rounds = call.tokens * std::max<std::int64_t>(step, 24)});
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
  go_back(pass);
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(back_arguments(problem, config));
  };
  return pass;
}

std::vector<Pass> passes_of(const RecurrenceSlots& slots) {
  const std::vector<std::size_t> bindings = cooperative_bindings(slots);
  Pass states = cooperative_pass("states", bindings, arguments),
       carry = cooperative_states_pass("carry", bindings, arguments, 4);
  Pass gradients = cooperative_pass(
      "gradients",
      {slots.query, slots.key, slots.value, slots.g, slots.gamma, slots.gk, slots.grad_output,
       slots.grad_query, slots.grad_key, kScratch, slots.grad_value, slots.grad_g, slots.grad_gk},
      arguments);
  Pass back_states = back_pass(slots, states), back_carry = back_pass(slots, carry);
  std::vector<Pass> passes =
      list_of(boundaries_pass(slots, bytes_before_boundaries), std::move(states), std::move(carry),
              std::move(back_states), std::move(back_carry), std::move(gradients),
              back_pass(slots, cooperative_final_pass(slots, arguments)));
  std::ranges::move(cooperative_gradient_steps(slots, step_arguments), std::back_inserter(passes));
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
