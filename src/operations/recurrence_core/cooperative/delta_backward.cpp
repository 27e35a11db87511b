// SPDX-License-Identifier: Apache-2.0
// Gradients of delta rules by matrix units through Vulkan: what all columns share of chunks of 64
// tokens; columns of the state forth and of its gradient back, side by side; then each chunk by
// itself. What matrices can't take goes step by step, in the scratch memory that chunks have had.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cooperative/delta.hpp"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/tile.hpp"

namespace tessera::operations::recurrence {
namespace {

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of chunks states before them and the gradients of those behind them, changes, gradients of what
// those are of beta with rows of those of outputs, and shares of gradients of beta.
struct DeltaScratch : CooperativeScratch {
  std::uint64_t before = 0, behind = 0, changes = 0, slopes = 0, beta_shares = 0;
};

DeltaScratch delta_scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  constexpr std::int64_t kTokens = RECUR_DELTA_CHUNK;
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  DeltaScratch scratch;
  add_delta_chunks(problem, config, scratch);
  scratch.before = scratch.add(6 * chunks * call.key_dim * call.value_dim);
  scratch.behind = scratch.add(6 * chunks * call.key_dim * call.value_dim);
  scratch.changes = scratch.add(2 * chunks * kTokens * call.value_dim);
  scratch.slopes = scratch.add(4 * chunks * kTokens * call.value_dim);
  scratch.beta_shares = scratch.add(4 * chunks * kTokens * (call.value_dim / 16));
  // Steps take the place of all that, not of what comes behind.
  scratch.end =
      std::max(scratch.end, scratch_of(problem, cooperative_step_config(problem, config)).bytes());
  scratch.add_last(problem, config);
  return scratch;
}

std::uint64_t bytes_before_boundaries(const Problem& problem, const Config& config) {
  return delta_scratch_of(problem, config).end;
}

abi::RecurArgs arguments(const Problem& problem, const Config& config) {
  const DeltaScratch scratch = delta_scratch_of(problem, config);
  const auto narrow = [](std::uint64_t number) { return static_cast<abi::u32>(number); };
  abi::RecurArgs args = cooperative_arguments(problem, config, scratch);
  args.states = narrow(scratch.before / 16);
  args.dstates = narrow(scratch.behind / 16);
  args.changes = narrow(scratch.changes / 16);
  args.dchanges = narrow(scratch.slopes / 16);
  args.beta_shares = narrow(scratch.beta_shares / 4);
  return args;
}

// Of the last pass over states, whose gradients they are here.
abi::RecurArgs final_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = arguments(problem, config);
  args.final_state = args.dinitial;
  return args;
}

abi::RecurArgs step_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = tile_backward_arguments(problem, cooperative_step_config(problem, config));
  args.boundaries = static_cast<abi::u32>(delta_scratch_of(problem, config).end / 4);
  return args;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  const RecurrenceSlots& slots = call.slots;
  const std::uint32_t LANES = config.at("LANES");
  if (RECUR_COOP_DELTA_TEAM * LANES > profile.max_group_size)
    return "takes gradients of chunks by work-groups of " +
           std::to_string(RECUR_COOP_DELTA_TEAM * LANES) + " items";
  const std::int64_t step = 15 + config.at("STEP_X") + std::int64_t{4} * config.at("STEP_Y");
  return rejects_cooperative_delta(
      problem, config, profile,
      {.rows = {slots.grad_output, slots.grad_query, slots.grad_key, slots.grad_value},
       .local_bytes = cooperative_delta_bytes(problem, config),
       .scratch_bytes = bytes_before_boundaries(problem, config),
       .rounds = call.tokens * std::max<std::int64_t>(step, 24)});
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return cooperative_delta_configs(problem, profile, rejects);
}

// Forth and back at the same time.
Pass states_pass(const RecurrenceSlots& slots) {
  Pass pass = cooperative_pass(
      "delta_states",
      {slots.query, slots.key, slots.value, slots.g, slots.gamma, slots.gk, slots.initial_state,
       slots.grad_output, slots.grad_final_state, kScratch, slots.beta, slots.grad_value},
      arguments);
  go_back(pass);
  pass.groups = [](const Problem& problem, const Config&) {
    return groups_of(2 * delta_columns(call_of(problem)));
  };
  return pass;
}

Pass gradients_pass(const RecurrenceSlots& slots) {
  Pass pass = cooperative_pass(
      "delta_gradients",
      {slots.query, slots.key, slots.value, slots.g, slots.gamma, slots.gk, slots.grad_beta,
       slots.grad_query, slots.grad_key, kScratch, slots.beta, slots.grad_g},
      arguments);
  go_back(pass);
  pass.group_size = [](const Config& config) {
    const std::uint32_t LANES = config.at("LANES");
    return Dim3{RECUR_COOP_DELTA_TEAM * LANES};
  };
  pass.groups = [groups = pass.groups](const Problem& problem, const Config& config) {
    if (!wants(problem, RECUR_GRAD_QUERY | RECUR_GRAD_KEY | RECUR_GRAD_BETA | RECUR_GRAD_G))
      return Dim3{0, 0, 0};
    return groups(problem, config);
  };
  return pass;
}

// The gradients of first states, of sequences that are not marked.
Pass final_pass(const RecurrenceSlots& slots) {
  Pass pass = cooperative_final_pass(slots, final_arguments);
  pass.bindings[8] = slots.grad_initial_state;
  return pass;
}

}  // namespace

std::optional<Way> cooperative_delta_backward_way(const RecurrenceSlots& slots) {
  Variant variant;
  variant.idea = "chunks of 64 tokens by cooperative matrices: states both ways, then chunks apart";
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = cooperative_delta_bytes;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return bytes_before_boundaries(problem, config) + boundaries_bytes(problem);
  };
  variant.passes = list_of(boundaries_pass(slots, bytes_before_boundaries),
                           cooperative_delta_chunks_pass(slots, arguments), states_pass(slots),
                           gradients_pass(slots), final_pass(slots));
  std::ranges::move(cooperative_gradient_steps(slots, step_arguments),
                    std::back_inserter(variant.passes));
  return cooperative_way_of(std::move(variant));
}

}  // namespace tessera::operations::recurrence
