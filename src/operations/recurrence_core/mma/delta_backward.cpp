// SPDX-License-Identifier: Apache-2.0
// Gradients of delta rules by chunks of 64 tokens: what all columns share of each chunk; forward
// the states before chunks, back the gradients of those behind them; and then each chunk by itself.
#include <optional>
#include <utility>

#include "kernel/gpu.hpp"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/mma/delta.h"
#include "operations/recurrence_core/mma/delta.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kMostDim = 128;

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Scratch of a call: where each part begins, in floats, by fours.
struct Scratch {
  std::uint64_t states = 0, dstates = 0, changes = 0, dchanges = 0, end = 0;
};

Scratch scratch_of(const Problem& problem) {
  const RecurrenceProblem& call = call_of(problem);
  const auto columns = static_cast<std::uint64_t>(delta_chunks(call) * call.heads * call.value_dim);
  Scratch scratch{.end = delta_chunk_bytes(problem) / 4};
  const auto add = [&](std::uint64_t floats) {
    const std::uint64_t begin = scratch.end;
    scratch.end += floats;
    return begin;
  };
  scratch.states = add(columns * static_cast<std::uint64_t>(call.key_dim));
  scratch.dstates = add(columns * static_cast<std::uint64_t>(call.key_dim));
  scratch.changes = add(columns * RECUR_DELTA_CHUNK);
  scratch.dchanges = add(columns * RECUR_DELTA_CHUNK);
  return scratch;
}

std::uint64_t scratch_bytes(const Problem& problem, const Config& /*config*/) {
  return 4 * scratch_of(problem).end;
}

abi::RecurArgs arguments_behind(const Problem& problem) {
  const Scratch scratch = scratch_of(problem);
  abi::RecurArgs args = arguments_of(problem);
  args.states = static_cast<abi::u32>(scratch.states / 4);
  args.dstates = static_cast<abi::u32>(scratch.dstates / 4);
  args.changes = static_cast<abi::u32>(scratch.changes / 4);
  args.dchanges = static_cast<abi::u32>(scratch.dchanges / 4);
  args.segment = static_cast<abi::u32>(delta_chunks(call_of(problem)));
  args.boundaries = static_cast<abi::u32>(scratch.end);
  return args;
}

std::vector<std::byte> arguments(const Problem& problem, const Config& /*config*/) {
  return argument_bytes(arguments_behind(problem));
}

std::uint32_t gradient_bytes(const Problem& problem) {
  const std::uint32_t TOKENS = RECUR_DELTA_CHUNK,
                      KEY_DIM = static_cast<std::uint32_t>(call_of(problem).key_dim);
  return RECUR_DELTA_GRADIENT_BYTES;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  if (Refusal no = rejects_delta(problem, config, profile)) return no;
  for (const std::size_t slot : {call.slots.grad_query, call.slots.grad_key}) {
    if (Refusal no = rejects_rows(problem, slot)) return no;
  }
  if (call.key_dim > kMostDim || call.value_dim > kMostDim)
    return "takes gradients of key and value dims up to " + std::to_string(kMostDim);
  if (Refusal no = kernel::rejects_nvidia_bytes(gradient_bytes(problem), profile)) return no;
  if (scratch_of(problem).end >= std::uint64_t{1} << 32)
    return "counts scratch memory to 2^34 bytes, and the call takes more";
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return delta_space(problem, profile, rejects);
}

// Forth and back at the same time.
Pass states_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "states";
  pass.opencl = {.file = "recurrence/mma/delta_states.cl", .entry = "recurrence_delta_states"};
  pass.bindings = {slots.query,
                   slots.key,
                   slots.value,
                   slots.g,
                   slots.initial_state,
                   slots.grad_output,
                   slots.grad_final_state,
                   slots.grad_value,
                   slots.grad_initial_state,
                   kScratch};
  pass.axes = dtype_axes;
  pass.constants = delta_constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::uint32_t WG_X = config.group().x;
    return groups_of(delta_units(problem, config) * (RECUR_DELTA_BESIDE ? 1 : 2));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    abi::RecurArgs args = arguments_behind(problem);
    args.tiles = static_cast<abi::u32>(delta_units(problem, config));
    return argument_bytes(args);
  };
  return pass;
}

Pass gradients_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "gradients";
  pass.opencl = {.file = "recurrence/mma/delta_gradients.cl",
                 .entry = "recurrence_delta_gradients"};
  pass.bindings = {slots.query,       slots.key,        slots.value,    slots.g,
                   slots.grad_output, slots.grad_query, slots.grad_key, slots.grad_beta,
                   slots.grad_g,      kScratch};
  pass.axes = dtype_axes;
  pass.specialized_on = std::vector<std::string>{"KEY_DIM"};
  pass.group_size = [](const Config&) { return Dim3{RECUR_DELTA_GRADIENT_ITEMS}; };
  pass.constants = delta_constants;
  pass.groups = [](const Problem& problem, const Config&) {
    if (!wants(problem, RECUR_GRAD_QUERY | RECUR_GRAD_KEY | RECUR_GRAD_BETA | RECUR_GRAD_G))
      return Dim3{0, 0, 0};
    return groups_of((delta_chunks(call_of(problem)) + 1) * call_of(problem).heads);
  };
  pass.args = arguments;
  return pass;
}

}  // namespace

std::optional<Way> mma_delta_backward_way(const RecurrenceSlots& slots) {
  Variant variant;
  variant.idea = "chunks of 64 tokens by mma.sync: states and their gradients, then chunks apart";
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = delta_tunables();
  variant.rejects = rejects;
  variant.passes =
      list_of(boundaries_pass(slots, scratch_bytes), delta_chunks_pass(slots, arguments),
              states_pass(slots), gradients_pass(slots));
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_bytes(problem, config) + boundaries_bytes(problem);
  };
  return new_mma_way(std::move(variant), space);
}

}  // namespace tessera::operations::recurrence
