// SPDX-License-Identifier: Apache-2.0
// Gradients by chunks of 16 tokens: the states before all chunks, the gradients of states behind
// them, and then each chunk by itself.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/mma/geometry.h"
#include "operations/recurrence_core/mma/mma.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kMostDim = 128;
constexpr std::uint32_t kItems = 256;  // of recurrence/mma/gradients

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of all sequences, with one to spare for each.
std::int64_t chunks_of(const RecurrenceProblem& call) {
  return call.batch * call.tokens / RECUR_MMA_CHUNK + call.sequences + 1;
}

// Scratch of a call: where each part begins, in floats, by fours.
struct Scratch {
  std::uint64_t kept = 0, gradients = 0, sums = 0, spans = 0, gradient_spans = 0, end = 0;
};

Scratch scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  Scratch scratch;
  const auto add = [&](std::uint64_t floats) {
    const std::uint64_t begin = scratch.end;
    scratch.end += (floats + 3) / 4 * 4;
    return begin;
  };
  const auto states =
      static_cast<std::uint64_t>(chunks_of(call) * call.heads * call.key_dim * call.value_dim / 2);
  scratch.kept = add(states);
  scratch.gradients = add(states);
  const bool sums = problem.has(call.slots.grad_gamma);
  scratch.sums = add(sums ? static_cast<std::uint64_t>(rows_of(call)) : 0);
  scratch.spans = add(mma_span_bytes(problem, config) / 4);
  scratch.gradient_spans = add(mma_span_bytes(problem, config) / 4);
  return scratch;
}

std::uint64_t scratch_bytes(const Problem& problem, const Config& config) {
  return 4 * scratch_of(problem, config).end;
}

std::uint32_t gradient_bytes(const Problem& problem, const Config& config) {
  const std::vector<Define> numbers = mma_constants(problem, config);
  const std::uint32_t TOKENS = RECUR_MMA_CHUNK, STAGES = 1, WG_X = kItems,
                      KEY_DIM = numbers[0].value, KEY_DECAYS = numbers[1].value,
                      WIDE_DECAYS = numbers[2].value,
                      VALUE_DIM = static_cast<std::uint32_t>(call_of(problem).value_dim);
  return RECUR_MMA_GRADIENT_BYTES;
}

abi::RecurArgs arguments_behind(const Problem& problem, const Scratch& scratch) {
  abi::RecurArgs args = arguments_of(problem);
  args.kept = static_cast<abi::u32>(scratch.kept / 4);
  args.inner = static_cast<abi::u32>(scratch.gradients / 4);
  args.sums = static_cast<abi::u32>(scratch.sums / 4);
  args.segment = static_cast<abi::u32>(chunks_of(call_of(problem)));
  args.boundaries = static_cast<abi::u32>(scratch.end);
  return args;
}

std::vector<std::byte> gradient_arguments(const Problem& problem, const Config& config) {
  return argument_bytes(arguments_behind(problem, scratch_of(problem, config)));
}

// Of states, from the first token on; back, of their gradients: queries and gradients of outputs
// stand for keys and values, and the state begins as the gradient of the last one.
abi::RecurArgs state_arguments(const Problem& problem, const Config& config, bool back) {
  const Scratch scratch = scratch_of(problem, config);
  abi::RecurArgs args = arguments_behind(problem, scratch);
  add_mma_spans(problem, config, back ? scratch.gradient_spans : scratch.spans, args);
  const abi::u32 features = args.features;
  args.features &= ~RECUR_FINAL;
  if (!back) return args;
  args.features &= ~RECUR_INITIAL;
  if ((features & RECUR_FINAL) != 0) args.features |= RECUR_INITIAL;
  if ((features & RECUR_GRAD_INITIAL) != 0) args.features |= RECUR_FINAL;
  args.kept = args.inner;
  args.key = args.query;
  args.value = args.result;
  args.initial_state = args.final_state;
  args.final_state = args.dinitial;
  return args;
}

Pass state_pass(const RecurrenceSlots& slots, bool keeps, bool back) {
  Pass pass;
  pass.name = std::string(back ? "back_" : "") + (keeps ? "states" : "spans");
  pass.opencl = {.file = "recurrence/mma/forward.cl", .entry = "recurrence_mma"};
  pass.bindings = {slots.query,
                   back ? slots.query : slots.key,
                   back ? slots.grad_output : slots.value,
                   slots.g,
                   slots.gamma,
                   slots.gk,
                   back ? slots.grad_final_state : slots.initial_state,
                   kNoOperand,
                   back ? slots.grad_initial_state : kNoOperand,
                   kScratch};
  pass.axes = [keeps, back](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> axes = dtype_axes(problem, profile);
    axes.push_back({"RECUR_OUTPUTS", 0U});
    if (keeps || back) axes.push_back({"RECUR_KEEPS", keeps ? 1U : 0U});
    if (back) axes.push_back({"RECUR_GOES_BACK", 1U});
    return axes;
  };
  pass.specialized_on =
      std::vector<std::string>{"TOKENS", "STAGES", "KEY_DIM", "KEY_DECAYS", "WIDE_DECAYS"};
  pass.constants = mma_constants;
  pass.groups = [keeps](const Problem& problem, const Config& config) {
    return mma_span_groups(problem, config, keeps);
  };
  pass.args = [back](const Problem& problem, const Config& config) {
    return argument_bytes(state_arguments(problem, config, back));
  };
  return pass;
}

Pass gradients_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "gradients";
  pass.opencl = {.file = "recurrence/mma/gradients.cl", .entry = "recurrence_mma_gradients"};
  pass.bindings = {slots.query,    slots.key,        slots.value,       slots.g,
                   slots.gamma,    slots.gk,         slots.grad_output, slots.grad_query,
                   slots.grad_key, slots.grad_value, slots.grad_g,      slots.grad_gk,
                   kScratch};
  pass.axes = dtype_axes;
  pass.specialized_on =
      std::vector<std::string>{"KEY_DIM", "KEY_DECAYS", "WIDE_DECAYS", "VALUE_DIM"};
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  pass.constants = [](const Problem& problem, const Config& config) {
    std::vector<Define> constants = mma_constants(problem, config);
    constants.push_back({"VALUE_DIM", static_cast<std::uint32_t>(call_of(problem).value_dim)});
    return constants;
  };
  pass.groups = [](const Problem& problem, const Config&) {
    return groups_of((chunks_of(call_of(problem)) + 1) * call_of(problem).heads);
  };
  pass.args = gradient_arguments;
  return pass;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  if (Refusal no = rejects_mma_call(problem)) return no;
  if (call.key_dim > kMostDim || call.value_dim > kMostDim)
    return "takes gradients of key and value dims up to " + std::to_string(kMostDim);
  if (mma_columns(config) < call.value_dim)
    return "takes all columns of a state at once, and WG_X says " +
           std::to_string(mma_columns(config));
  if (Refusal no = rejects_mma_blocks(problem, config, profile, false)) return no;
  if (Refusal no = kernel::rejects_nvidia_bytes(gradient_bytes(problem, config), profile))
    return no;
  if (scratch_bytes(problem, config) >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint32_t kColumns = 128;
  constexpr std::array<MmaCut, 5> kCuts{{{kColumns, 64, 2, 1},
                                         {kColumns, 32, 2, 2},
                                         {kColumns, 32, 2, 1},
                                         {kColumns, 16, 2, 2},
                                         {kColumns, 16, 1, 2}}};
  std::vector<Config> list;
  for (const MmaCut& cut : kCuts) {
    Config config = mma_config(problem, profile, cut);
    if (!rejects(problem, config, profile) && std::ranges::count(list, config) == 0)
      list.push_back(std::move(config));
  }
  return list;
}

}  // namespace

std::optional<Way> mma_backward_way(const RecurrenceSlots& slots) {
  Variant variant;
  variant.idea = "states and their gradients at every 16 tokens by mma.sync, then chunks apart";
  variant.dtypes = {DType::kBF16};
  variant.tunables = mma_tunables();
  variant.tunables.push_back({.id = 8, .name = "VALUE_DIM", .fallback = 128, .is_constant = true});
  variant.rejects = rejects;
  variant.passes = list_of(boundaries_pass(slots, scratch_bytes), state_pass(slots, false, false),
                           state_pass(slots, false, true), state_pass(slots, true, false),
                           state_pass(slots, true, true), gradients_pass(slots),
                           gamma_pass(slots, gradient_arguments));
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_bytes(problem, config) + boundaries_bytes(problem);
  };
  return new_mma_way(std::move(variant), space);
}

}  // namespace tessera::operations::recurrence
