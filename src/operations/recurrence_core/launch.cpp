// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/launch.hpp"

#include <algorithm>
#include <string>

#include "operations/common/boundaries.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kMostGroups = 65535;  // along an axis, on any device
constexpr std::int64_t kMostDim = 512;

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::RecurRows rows_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const TensorSpec& spec = problem.spec(slot);
  return {narrow(spec.offset), narrow(spec.strides[0]), narrow(spec.strides[1]),
          narrow(spec.strides[2])};
}

abi::RecurStates states_of(const Problem& problem, std::size_t slot) {
  const abi::RecurRows at = rows_of(problem, slot);
  return {at.offset, at.batch, at.token, at.head};
}

abi::u32 type_of(const Problem& problem, std::size_t slot, abi::u32 shift) {
  return problem.has(slot) ? dtype_axis(problem.spec(slot).dtype) << shift : 0;
}

abi::u32 features_of(const Problem& problem) {
  const auto& call = problem.as<RecurrenceProblem>();
  const RecurrenceSlots& slots = call.slots;
  abi::u32 features = 0;
  const auto mark = [&](bool holds, abi::u32 feature) { features |= holds ? feature : 0U; };
  mark(call.reverse, RECUR_REVERSE);
  mark(call.packed, RECUR_PACKED);
  mark(problem.has(slots.g), call.key_gate ? RECUR_KEY_GATE : RECUR_GATE);
  mark(problem.has(slots.gamma), RECUR_GAMMA);
  mark(problem.has(slots.gk), RECUR_GK);
  mark(problem.has(slots.gv), RECUR_GV);
  mark(problem.has(slots.initial_state), RECUR_INITIAL);
  mark(problem.has(slots.final_state) || problem.has(slots.grad_final_state), RECUR_FINAL);
  mark(is_aligned(problem), RECUR_ALIGNED);
  mark(problem.has(slots.grad_query), RECUR_GRAD_QUERY);
  mark(problem.has(slots.grad_key), RECUR_GRAD_KEY);
  mark(problem.has(slots.grad_value), RECUR_GRAD_VALUE);
  mark(problem.has(slots.grad_g), RECUR_GRAD_G);
  mark(problem.has(slots.grad_gamma), RECUR_GRAD_GAMMA);
  mark(problem.has(slots.grad_gk), RECUR_GRAD_GK);
  mark(problem.has(slots.grad_gv), RECUR_GRAD_GV);
  mark(problem.has(slots.grad_beta), RECUR_GRAD_BETA);
  mark(problem.has(slots.grad_initial_state), RECUR_GRAD_INITIAL);
  return features;
}

}  // namespace

bool is_aligned(const Problem& problem) {
  return std::ranges::all_of(problem.operands, [](const std::optional<TensorSpec>& spec) {
    if (!spec || spec->shape.size() != 4) return true;
    const auto by_fours = [](std::int64_t number) { return number % 4 == 0; };
    return by_fours(spec->offset) && by_fours(spec->shape.back()) &&
           std::all_of(spec->strides.begin(), spec->strides.end() - 1, by_fours);
  });
}

abi::RecurArgs arguments_of(const Problem& problem) {
  const auto& call = problem.as<RecurrenceProblem>();
  const RecurrenceSlots& slots = call.slots;
  abi::RecurArgs args{};
  args.features = features_of(problem);
  args.types =
      type_of(problem, slots.query, RECUR_TYPE_ROWS) | type_of(problem, slots.g, RECUR_TYPE_G) |
      type_of(problem, slots.gamma, RECUR_TYPE_GAMMA) | type_of(problem, slots.gk, RECUR_TYPE_GK) |
      type_of(problem, slots.gv, RECUR_TYPE_GV) | type_of(problem, slots.beta, RECUR_TYPE_BETA);
  args.tokens = narrow(call.tokens);
  args.sequences = narrow(call.sequences);
  args.heads = narrow(call.heads);
  args.key_dim = narrow(call.key_dim);
  args.value_dim = narrow(call.value_dim);
  args.most = narrow(call.tokens);
  args.spans = 1;
  args.scale = static_cast<float>(call.scale);
  args.slope = static_cast<float>(call.slope);
  if (problem.has(slots.gamma)) {
    args.gamma_offset = narrow(problem.spec(slots.gamma).offset);
    args.gamma_stride = narrow(problem.spec(slots.gamma).strides[0]);
  }
  args.query = rows_of(problem, slots.query);
  args.key = rows_of(problem, slots.key);
  args.value = rows_of(problem, slots.value);
  args.g = rows_of(problem, slots.g);
  args.gk = rows_of(problem, slots.gk);
  args.gv = rows_of(problem, slots.gv);
  args.beta = rows_of(problem, slots.beta);
  args.result = rows_of(problem, slots.backward() ? slots.grad_output : slots.output);
  args.initial_state = states_of(problem, slots.initial_state);
  args.final_state =
      states_of(problem, slots.backward() ? slots.grad_final_state : slots.final_state);
  args.rows = narrow(call.batch * call.tokens * call.heads);
  if (problem.has(slots.grad_gamma)) {
    args.dgamma_offset = narrow(problem.spec(slots.grad_gamma).offset);
    args.dgamma_stride = narrow(problem.spec(slots.grad_gamma).strides[0]);
  }
  args.dquery = rows_of(problem, slots.grad_query);
  args.dkey = rows_of(problem, slots.grad_key);
  args.dvalue = rows_of(problem, slots.grad_value);
  args.dg = rows_of(problem, slots.grad_g);
  args.dgk = rows_of(problem, slots.grad_gk);
  args.dgv = rows_of(problem, slots.grad_gv);
  args.dbeta = rows_of(problem, slots.grad_beta);
  args.dinitial = states_of(problem, slots.grad_initial_state);
  return args;
}

std::uint64_t state_bytes(const RecurrenceProblem& call) {
  return std::uint64_t{4} *
         static_cast<std::uint64_t>(call.sequences * call.heads * call.key_dim * call.value_dim);
}

std::int64_t units_of(const RecurrenceProblem& call, std::int64_t columns) {
  // A packed call of no sequence still has rows to write.
  const std::int64_t sequences =
      call.packed ? std::max<std::int64_t>(call.sequences, 1) : call.sequences;
  return sequences * call.heads * ceil_div(call.value_dim, columns);
}

Dim3 groups_of(std::int64_t units) {
  if (units == 0) return {0, 0, 0};
  const std::int64_t x = std::min(units, kMostGroups);
  return {narrow(x), ceil_div(units, x)};
}

Refusal rejects_recurrence(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<RecurrenceProblem>();
  if (call.key_dim > kMostDim || call.value_dim > kMostDim)
    return "takes key and value dims up to " + std::to_string(kMostDim);
  if (units_of(call, 1) >= std::int64_t{1} << 31) return "counts states' columns to 2^31";
  return rejects_long_operands(problem, profile, {});
}

std::vector<std::size_t> forward_bindings(const RecurrenceSlots& slots) {
  if (slots.delta()) {
    return {slots.query,         slots.key,    slots.value,       slots.beta, slots.g,
            slots.initial_state, slots.output, slots.final_state, kScratch};
  }
  return {slots.query, slots.key,           slots.value,  slots.g,           slots.gamma, slots.gk,
          slots.gv,    slots.initial_state, slots.output, slots.final_state, kScratch};
}

std::size_t key_decays(const Problem& problem) {
  const auto& call = problem.as<RecurrenceProblem>();
  if (problem.has(call.slots.gk)) return call.slots.gk;
  return call.key_gate ? call.slots.g : kNoOperand;
}

Refusal rejects_chunks_by_matrices(const Problem& problem) {
  constexpr std::int64_t kMostDim = 256;
  const auto& call = problem.as<RecurrenceProblem>();
  const auto fits = [](std::int64_t dim) { return dim % 16 == 0 && dim <= kMostDim; };
  if (!fits(call.key_dim) || !fits(call.value_dim))
    return "takes key and value dims that are multiples of 16, up to 256, not " +
           std::to_string(call.key_dim) + " and " + std::to_string(call.value_dim);
  if (problem.has(call.slots.gv)) return "takes no decays of value dims";
  if (call.key_gate && problem.has(call.slots.gk))
    return "takes one decay of key dims, and the call has two, g and gk";
  return std::nullopt;
}

Pass boundaries_pass(const RecurrenceSlots& slots, ScratchBytes before) {
  return operations::boundaries_pass(
      slots.cu_seqlens, kNoOperand,
      [before](const Problem& problem, const Config& config) -> Boundaries {
        return {.tokens = problem.as<RecurrenceProblem>().tokens,
                .result = before(problem, config),
                .outside = RECUR_ERROR_OUTSIDE,
                .decreases = RECUR_ERROR_DECREASES};
      });
}

std::uint64_t boundaries_bytes(const Problem& problem) {
  return operations::boundaries_bytes(problem, problem.as<RecurrenceProblem>().slots.cu_seqlens);
}

}  // namespace tessera::operations::recurrence
