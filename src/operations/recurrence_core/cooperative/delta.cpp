// SPDX-License-Identifier: Apache-2.0
// Delta rules by matrix units through Vulkan: what all columns share of chunks of 64 tokens, all at
// once, and then columns of the state from chunk to chunk.
#include "operations/recurrence_core/cooperative/delta.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

static_assert(RECUR_COOP_DELTA_TOKENS == RECUR_DELTA_CHUNK);

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

CooperativeScratch scratch_of(const Problem& problem, const Config& config) {
  CooperativeScratch scratch;
  add_delta_chunks(problem, config, scratch);
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
  return rejects_cooperative_delta(problem, config, profile,
                                   {.rows = {call.slots.output},
                                    .local_bytes = cooperative_delta_bytes(problem, config),
                                    .scratch_bytes = bytes_before_boundaries(problem, config),
                                    .rounds = call.tokens * 24});
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list = cooperative_delta_configs(problem, profile, rejects);
  // On an H200 asking ahead takes registers of a second work-group: 4.34 ms for 5.9 of 16 heads,
  // whose work-groups have a multiprocessor each, and 4.28 for 3.47 of 64.
  if (delta_columns(call_of(problem)) <= std::int64_t{profile.compute_units}) {
    for (Config& config : list) config.set("AHEAD", 1);
  }
  return list;
}

}  // namespace

std::uint64_t cooperative_delta_bytes(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/cooperative/cooperative.def"
  const auto KEY_DIM = static_cast<Number>(call_of(problem).key_dim),
             VALUE_DIM = static_cast<Number>(call_of(problem).value_dim), KEY_DECAYS = 0U;
  if (!(RECUR_COOP_DIVISORS) || !(RECUR_COOP_VALID) || !(RECUR_COOP_DELTA_VALID)) return 0;
  const std::uint32_t bytes = RECUR_COOP_DELTA_BYTES;
  return call_of(problem).slots.backward() ? std::max(bytes, RECUR_COOP_DELTA_GRADIENTS_BYTES)
                                           : bytes;
}

std::int64_t delta_columns(const RecurrenceProblem& call) {
  return call.sequences * call.heads * (call.value_dim / 16);
}

void add_delta_chunks(const Problem& problem, const Config& config, CooperativeScratch& scratch) {
  const RecurrenceProblem& call = call_of(problem);
  constexpr std::int64_t kTokens = RECUR_DELTA_CHUNK;
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  scratch.states = scratch.add(chunks * 4 * kTokens * call.key_dim);
  scratch.kept = scratch.add(chunks * (call.slots.backward() ? 10 : 6) * kTokens * kTokens);
  scratch.factors = scratch.add(chunks * 12 * kTokens);
}

Refusal rejects_cooperative_delta(const Problem& problem, const Config& config,
                                  const DeviceProfile& profile, CooperativeNeeds needs) {
  const RecurrenceSlots& slots = call_of(problem).slots;
  if (call_of(problem).key_gate) return "takes decays that all key dims share";
  needs.rows.insert(needs.rows.end(), {slots.query, slots.key, slots.value});
  return rejects_cooperative(problem, config, profile, needs);
}

std::vector<Config> cooperative_delta_configs(const Problem& problem, const DeviceProfile& profile,
                                              CooperativeRejects rejects) {
  return cooperative_configs(problem, profile,
                             {.part = RECUR_COOP_PART,
                              .most_tokens = RECUR_DELTA_CHUNK,
                              .least_items = RECUR_DELTA_CHUNK,
                              .rejects = rejects,
                              .local_bytes = cooperative_delta_bytes});
}

Pass cooperative_delta_chunks_pass(const RecurrenceSlots& slots, CooperativeArguments arguments) {
  std::vector<std::size_t> bindings = cooperative_bindings(slots);
  bindings.push_back(slots.beta);
  Pass pass = cooperative_pass("delta_chunks", std::move(bindings), arguments);
  if (slots.backward()) go_back(pass);
  return pass;
}

std::optional<Way> cooperative_delta_way(const RecurrenceSlots& slots) {
  Variant variant;
  variant.idea = "chunks of 64 tokens by cooperative matrices: each is a triangle, solved once";
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = cooperative_delta_bytes;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return bytes_before_boundaries(problem, config) + boundaries_bytes(problem);
  };
  Pass chunks = cooperative_delta_chunks_pass(slots, arguments);
  Pass forward = cooperative_pass("delta_forward", chunks.bindings, arguments);
  forward.specialized_on->push_back("AHEAD");
  forward.groups = [](const Problem& problem, const Config&) {
    return groups_of(delta_columns(call_of(problem)));
  };
  variant.passes = list_of(boundaries_pass(slots, bytes_before_boundaries), std::move(chunks),
                           std::move(forward), cooperative_steps_pass(slots, arguments),
                           cooperative_final_pass(slots, arguments));
  return cooperative_way_of(std::move(variant));
}

}  // namespace tessera::operations::recurrence
