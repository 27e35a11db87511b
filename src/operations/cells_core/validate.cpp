// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>

#include "kernel/option_access.hpp"
#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;  // kernels keep lengths as floats

void check(const Problem& problem, std::size_t slot, const Shape& shape) {
  if (slot == kNoOperand || !problem.has(slot)) return;
  require_shape(problem, slot, shape);
  const DType dtype = problem.spec(slot).dtype;
  require(problem, dtype == problem.dtype || dtype == DType::kI32,
          operand_text(problem, slot) + " must have the dtype of input");
}

void read_sizes(const Problem& problem, CellProblem& call) {
  const CellSlots& slots = call.slots;
  const Shape& input = problem.spec(slots.input).shape;
  const Shape& weight = problem.spec(slots.weight_hh).shape;
  call.projects = slots.weight_hr != kNoOperand && problem.has(slots.weight_hr);
  require(problem, input.size() == 3,
          operand_text(problem, slots.input) + " must be [batch, seq, features]");
  require(problem, weight.size() == 3,
          operand_text(problem, slots.weight_hh) + " must be [directions, " +
              (call.gates == 1 ? "" : std::to_string(call.gates) + " ") + "hidden, " +
              (call.projects ? "proj]" : "hidden]"));
  call.batch = input[0];
  call.tokens = input[1];
  call.features = input[2];
  call.directions = weight[0];
  call.outputs = call.hidden = weight[2];
  if (call.projects) {
    const Shape& projection = problem.spec(slots.weight_hr).shape;
    require(problem, projection.size() == 3,
            operand_text(problem, slots.weight_hr) + " must be [directions, proj, hidden]");
    call.hidden = projection[2];
  }
  require(problem, call.directions == 1 || call.directions == 2,
          operand_text(problem, slots.weight_hh) + " must have one direction or two");
  require(problem, call.hidden >= 1 && call.outputs >= 1 && call.features >= 1,
          "input and hidden state must have at least one feature");
  require(problem, call.tokens < kMostTokens, "sequences must be shorter than 2^24 tokens");
}

Shape reserve_shape(const CellProblem& call) {
  return {call.batch, call.tokens, call.directions, call.kept()};
}

void check_inputs(const Problem& problem, const CellProblem& call) {
  const CellSlots& slots = call.slots;
  const std::int64_t rows = call.gates * call.hidden;
  const Shape states{call.directions, call.batch, call.outputs};
  const Shape cells{call.directions, call.batch, call.hidden};
  check(problem, slots.weight_ih, {call.directions, rows, call.features});
  check(problem, slots.weight_hh, {call.directions, rows, call.outputs});
  check(problem, slots.weight_hr, {call.directions, call.outputs, call.hidden});
  check(problem, slots.bias_ih, {call.directions, rows});
  check(problem, slots.bias_hh, {call.directions, rows});
  check(problem, slots.h0, states);
  check(problem, slots.c0, cells);
  check(problem, slots.lengths, {call.batch});
  check(problem, slots.grad_output, {call.batch, call.tokens, call.directions * call.outputs});
  check(problem, slots.grad_h_n, states);
  check(problem, slots.grad_c_n, cells);
  if (problem.has(slots.reserve)) require_shape(problem, slots.reserve, reserve_shape(call));
}

void infer_outputs(Problem& problem, const CellProblem& call) {
  const CellSlots& slots = call.slots;
  const Shape states{call.directions, call.batch, call.outputs};
  const Shape cells{call.directions, call.batch, call.hidden};
  if (!slots.backward()) {
    problem.infer_output(slots.output, problem.dtype,
                         {call.batch, call.tokens, call.directions * call.outputs});
    problem.infer_output(slots.h_n, problem.dtype, states);
    if (slots.c_n != kNoOperand) problem.infer_output(slots.c_n, problem.dtype, cells);
    problem.infer_output(slots.reserve, DType::kF32, reserve_shape(call));
    return;
  }
  for (const auto& [gradient, operand] : slots.gradients()) {
    if (gradient == kNoOperand || !problem.requested[gradient]) continue;
    const std::string& name = problem.operation->operands[operand].name;
    require(problem, problem.has(operand),
            problem.operation->operands[gradient].name + " is wanted, but the call has no " + name);
    problem.infer_output(gradient, problem.dtype, problem.spec(operand).shape);
  }
}

}  // namespace

void validate_cells(Problem& problem, const CellSlots& slots) {
  problem.dtype = problem.spec(slots.input).dtype;
  CellProblem call{.slots = slots};
  call.gates = gates_of(slots.cell);
  read_sizes(problem, call);
  check_inputs(problem, call);
  call.reverse = kernel::bool_option(problem, "reverse");
  if (slots.cell == Cell::kRnn)
    call.relu = kernel::choice_option(problem, "activation", {"tanh", "relu"}) == 1;
  infer_outputs(problem, call);
  call.has_reserve = problem.has(slots.reserve);
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) + ";batch=" + bucket(call.batch) +
                ";tokens=" + bucket(call.tokens) + ";features=" + bucket(call.features) +
                ";hidden=" + bucket(call.hidden) + ";directions=" + std::to_string(call.directions);
  if (call.has_reserve) problem.key += ";reserve";
  if (call.projects) problem.key += ";outputs=" + bucket(call.outputs);
  problem.set_details(call);
}

}  // namespace tessera::operations::cells
