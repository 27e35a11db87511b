// SPDX-License-Identifier: Apache-2.0
// Delta rules by matrix units through Vulkan: what all columns share of chunks of 64 tokens, all at
// once, and then columns of the state from chunk to chunk.
#include <string>
#include <utility>

#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cooperative/cooperative.hpp"
#include "operations/recurrence_core/cooperative/geometry.h"
#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

static_assert(RECUR_COOP_DELTA_TOKENS == RECUR_DELTA_CHUNK);

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of a work-group; 0 where the kernels have no such geometry.
std::uint64_t local_bytes_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/cooperative/cooperative.def"
  const auto KEY_DIM = static_cast<Number>(call_of(problem).key_dim),
             VALUE_DIM = static_cast<Number>(call_of(problem).value_dim), KEY_DECAYS = 0U;
  if (!(RECUR_COOP_DIVISORS) || !(RECUR_COOP_VALID) || !(RECUR_COOP_DELTA_VALID)) return 0;
  return RECUR_COOP_DELTA_BYTES;
}

// Where things begin in scratch, in bytes.
struct DeltaScratch {
  std::uint64_t rows = 0, squares = 0, numbers = 0, last = 0, chunk_marks = 0, end = 0;
};

DeltaScratch delta_scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  DeltaScratch scratch;
  const auto add = [&](std::int64_t bytes) {
    const std::uint64_t begin = scratch.end;
    scratch.end += (static_cast<std::uint64_t>(bytes) + 15) / 16 * 16;
    return begin;
  };
  constexpr std::int64_t kTokens = RECUR_DELTA_CHUNK;
  const std::int64_t chunks = cooperative_chunks(call, config) * call.heads;
  const std::int64_t units = call.sequences * call.heads;
  scratch.rows = add(chunks * 4 * kTokens * call.key_dim);
  scratch.squares = add(chunks * 6 * kTokens * kTokens);
  scratch.numbers = add(chunks * 12 * kTokens);
  scratch.last = add(4 * units * call.key_dim * call.value_dim);
  scratch.chunk_marks = add(4 * chunks);
  add(4 * units);  // RECUR_MARK_PLACE
  return scratch;
}

std::uint64_t bytes_before_boundaries(const Problem& problem, const Config& config) {
  return delta_scratch_of(problem, config).end;
}

abi::RecurArgs arguments(const Problem& problem, const Config& config) {
  const DeltaScratch scratch = delta_scratch_of(problem, config);
  const auto narrow = [](std::uint64_t number) { return static_cast<abi::u32>(number); };
  abi::RecurArgs args = arguments_of(problem);
  args.segment = static_cast<abi::u32>(cooperative_chunks(call_of(problem), config));
  args.span_states = narrow(scratch.rows / 16);
  args.kept = narrow(scratch.squares / 16);
  args.span_factors = narrow(scratch.numbers / 4);
  args.tiles = narrow(scratch.last / 16);
  args.inner = narrow(scratch.chunk_marks / 4);
  args.boundaries = narrow(scratch.end / 4);
  return args;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  const RecurrenceSlots& slots = call.slots;
  if (call.key_gate) return "takes decays that all key dims share";
  if (Refusal no = rejects_cooperative(problem, config, profile,
                                       {slots.query, slots.key, slots.value, slots.output}))
    return no;
  if (local_bytes_of(problem, config) == 0)
    return "has a work-group that does not divide into matrices "
           "(operations/recurrence_core/cooperative/geometry.h)";
  if (delta_scratch_of(problem, config).end >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  if (Refusal no = rejects_rounds(call.tokens * 24, profile)) return no;
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return cooperative_configs(problem, profile,
                             {.part = RECUR_COOP_PART,
                              .most_tokens = RECUR_DELTA_CHUNK,
                              .least_items = RECUR_DELTA_CHUNK,
                              .rejects = rejects,
                              .local_bytes = local_bytes_of});
}

}  // namespace

std::optional<Way> cooperative_delta_way(const RecurrenceSlots& slots) {
  if (slots.backward()) return std::nullopt;
  Variant variant;
  variant.idea = "chunks of 64 tokens by cooperative matrices: each is a triangle, solved once";
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes_of;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return bytes_before_boundaries(problem, config) + boundaries_bytes(problem);
  };
  std::vector<std::size_t> bindings = cooperative_bindings(slots);
  bindings.push_back(slots.beta);
  Pass chunks = cooperative_pass("delta_chunks", bindings, arguments);
  Pass forward = cooperative_pass("delta_forward", bindings, arguments);
  forward.groups = [](const Problem& problem, const Config&) {
    const RecurrenceProblem& call = call_of(problem);
    return groups_of(call.sequences * call.heads * (call.value_dim / 16));
  };
  variant.passes = {boundaries_pass(slots, bytes_before_boundaries), std::move(chunks),
                    std::move(forward), cooperative_steps_pass(slots, arguments),
                    cooperative_final_pass(slots, arguments)};
  return cooperative_way_of(std::move(variant));
}

}  // namespace tessera::operations::recurrence
