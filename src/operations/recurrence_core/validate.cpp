// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <cmath>
#include <string>

#include "kernel/option_access.hpp"
#include "operations/recurrence_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;  // so that kernels add in 32 bits

void require_contiguous(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

// An operand of rows, in the dtype of query or, where it may be wide, in f32.
void check_rows(const Problem& problem, std::size_t slot, const Shape& shape, bool wide) {
  if (!problem.has(slot)) return;
  require_shape(problem, slot, shape);
  const DType dtype = problem.spec(slot).dtype;
  require(problem, dtype == problem.dtype || (wide && dtype == DType::kF32),
          operand_text(problem, slot) + " must have the dtype of query" + (wide ? " or f32" : ""));
  if (shape.size() == 4) require_contiguous(problem, slot);
}

void check_states(const Problem& problem, std::size_t slot, const RecurrenceProblem& call) {
  if (!problem.has(slot)) return;
  require_shape(problem, slot, {call.sequences, call.heads, call.key_dim, call.value_dim});
  require_contiguous(problem, slot);
}

void read_sizes(const Problem& problem, RecurrenceProblem& call) {
  const RecurrenceSlots& slots = call.slots;
  const Shape& query = problem.spec(slots.query).shape;
  const Shape& value = problem.spec(slots.value).shape;
  require(problem, query.size() == 4,
          operand_text(problem, slots.query) + " must be [batch, seq, heads, key_dim]");
  require(problem, value.size() == 4,
          operand_text(problem, slots.value) + " must be [batch, seq, heads, value_dim]");
  call.batch = query[0];
  call.tokens = query[1];
  call.heads = query[2];
  call.key_dim = query[3];
  call.value_dim = value[3];
  require(problem, call.key_dim >= 1 && call.value_dim >= 1,
          "key_dim and value_dim must be at least 1");
  require(problem, call.tokens < kMaxLength, "sequences must be shorter than 2^30 tokens");
  call.packed = problem.has(slots.cu_seqlens);
  call.sequences = call.batch;
  if (!call.packed) return;
  const Shape& boundaries = problem.spec(slots.cu_seqlens).shape;
  require(problem, boundaries.size() == 1 && boundaries[0] >= 1,
          operand_text(problem, slots.cu_seqlens) +
              " must have one axis, of one element more than there are sequences");
  require(problem, call.batch == 1,
          operand_text(problem, slots.query) + " must have batch 1, for cu_seqlens packs it");
  call.sequences = boundaries[0] - 1;
}

void check_inputs(const Problem& problem, RecurrenceProblem& call) {
  const RecurrenceSlots& slots = call.slots;
  const Shape keys{call.batch, call.tokens, call.heads, call.key_dim};
  const Shape values{call.batch, call.tokens, call.heads, call.value_dim};
  check_rows(problem, slots.query, keys, false);
  check_rows(problem, slots.key, keys, false);
  check_rows(problem, slots.value, values, false);
  if (problem.has(slots.g)) {
    const std::size_t rank = problem.spec(slots.g).shape.size();
    require(problem, rank == 3 || rank == 4,
            operand_text(problem, slots.g) +
                " must be [batch, seq, heads] or [batch, seq, heads, key_dim]");
    call.key_gate = rank == 4;
    check_rows(problem, slots.g, call.key_gate ? keys : Shape{call.batch, call.tokens, call.heads},
               true);
  }
  check_rows(problem, slots.beta, {call.batch, call.tokens, call.heads}, true);
  check_rows(problem, slots.gamma, {call.heads}, true);
  check_rows(problem, slots.gk, keys, true);
  check_rows(problem, slots.gv, values, true);
  check_states(problem, slots.initial_state, call);
  check_states(problem, slots.state, call);
  check_rows(problem, slots.grad_output, values, false);
  check_states(problem, slots.grad_final_state, call);
}

// The state of a call that has one is what kernels read first and write last.
void take_in_place(const Problem& problem, RecurrenceProblem& call) {
  RecurrenceSlots& slots = call.slots;
  call.in_place = problem.has(slots.state);
  if (!call.in_place) return;
  for (const std::size_t slot : {slots.initial_state, slots.final_state}) {
    require(
        problem, !problem.has(slot) && !problem.requested[slot],
        "state is changed in place, so the call has no " + problem.operation->operands[slot].name);
  }
  slots.initial_state = slots.final_state = slots.state;
}

// gamma_h = -(8 / heads) (1 - layer_idx / num_layers) h.
double slope_of_layer(const Problem& problem, std::int64_t heads) {
  const auto layers = integer_option(problem, "num_layers", 1);
  const auto layer = integer_option(problem, "layer_idx", 0);
  require(problem, layers.has_value(), "option 'num_layers' must say how many layers there are");
  require(problem, layer.has_value(), "option 'layer_idx' must say which of them this is");
  if (*layer >= *layers) {
    kernel::bad_option(problem, "layer_idx",
                       "below num_layers, which is " + std::to_string(*layers));
  }
  const double depth = static_cast<double>(*layer) / static_cast<double>(*layers);
  return heads == 0 ? 0 : -8.0 / static_cast<double>(heads) * (1 - depth);
}

void infer_outputs(Problem& problem, const RecurrenceProblem& call) {
  const RecurrenceSlots& slots = call.slots;
  const Shape states{call.sequences, call.heads, call.key_dim, call.value_dim};
  if (!slots.backward()) {
    problem.infer_output(slots.output, problem.dtype,
                         {call.batch, call.tokens, call.heads, call.value_dim});
    if (!call.in_place) problem.infer_output(slots.final_state, DType::kF32, states);
    return;
  }
  for (const auto& [gradient, operand] : slots.gradients()) {
    if (gradient == kNoOperand || !problem.requested[gradient]) continue;
    const std::string& name = problem.operation->operands[operand].name;
    require(problem, problem.has(operand),
            problem.operation->operands[gradient].name + " is wanted, but the call has no " + name);
    problem.infer_output(gradient, problem.spec(operand).dtype, problem.spec(operand).shape);
  }
}

std::string make_key(const Problem& problem, const RecurrenceProblem& call) {
  const RecurrenceSlots& slots = call.slots;
  const bool by_key = call.key_gate || problem.has(slots.gk);
  const char* decay = problem.has(slots.gv) ? "value" : by_key ? "key" : "head";
  return "dtype=" + std::string(to_string(problem.dtype)) + ";decay=" + decay +
         ";key_dim=" + bucket(call.key_dim) + ";value_dim=" + bucket(call.value_dim) +
         ";heads=" + bucket(call.heads) + ";tokens=" + bucket(call.tokens) +
         ";sequences=" + bucket(call.sequences) + (call.packed ? ";packed" : "") +
         (call.in_place ? ";in_place" : "");
}

}  // namespace

void validate_recurrence(Problem& problem, const RecurrenceSlots& slots) {
  problem.dtype = problem.spec(slots.query).dtype;
  RecurrenceProblem call{.slots = slots};
  read_sizes(problem, call);
  check_inputs(problem, call);
  take_in_place(problem, call);
  call.reverse = kernel::bool_option(problem, "reverse");
  call.scale = kernel::number_option(problem, "softmax_scale")
                   .value_or(1 / std::sqrt(static_cast<double>(call.key_dim)));
  if (slots.of_layers) call.slope = slope_of_layer(problem, call.heads);
  infer_outputs(problem, call);
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    const bool has_rows = problem.has(slot) && problem.spec(slot).shape.size() == 4;
    if (has_rows) require_contiguous(problem, slot);
  }
  problem.key = make_key(problem, call);
  problem.set_details(call);
}

}  // namespace tessera::operations::recurrence
