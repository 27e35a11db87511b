// SPDX-License-Identifier: Apache-2.0
// moe_ffn and its gradients: what they take.
#include <algorithm>
#include <string>
#include <utility>

#include "base/tensors/checked.hpp"
#include "kernel/option_access.hpp"
#include "operations/common/validate.hpp"
#include "operations/matmul_core/core/args.h"
#include "operations/moe/ffn.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::moe {
namespace {

const std::vector<DType> kFloats{DType::kF32, DType::kF16, DType::kBF16};

Operand ffn_operand(std::string name, Role role, bool optional, std::string shape,
                    std::vector<DType> dtypes, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = std::move(dtypes),
          .doc = std::move(doc)};
}

void require_list(const Problem& problem, std::size_t slot, const Shape& shape) {
  require_shape(problem, slot, shape);
  require(problem, problem.spec(slot).is_contiguous(),
          problem.operation->operands[slot].name + " must be contiguous");
}

// Tokens, features and matrices.
void read_matrices(const Problem& problem, FfnProblem& call) {
  const FfnSlots& slots = call.slots;
  const Shape &input = problem.spec(slots.input).shape, &down = problem.spec(slots.down).shape;
  require(problem, input.size() == 2,
          operand_text(problem, slots.input) + " must be [tokens, hidden]");
  require(problem, down.size() == 3,
          operand_text(problem, slots.down) + " must be " +
              problem.operation->operands[slots.down].shape);
  call.transposed = kernel::bool_option(problem, "transposed");
  call.tokens = input[0];
  call.hidden = input[1];
  call.experts = down[0];
  call.inner = down[call.transposed ? 2 : 1];
  require_shape(problem, slots.down,
                call.transposed ? Shape{call.experts, call.hidden, call.inner}
                                : Shape{call.experts, call.inner, call.hidden});
  constexpr abi::u32 kActivations[] = {MATMUL_SILU, MATMUL_GELU, MATMUL_GELU_TANH, MATMUL_RELU,
                                       MATMUL_NONE};
  call.activation = kActivations[kernel::choice_option(
      problem, "activation", {"silu", "gelu", "gelu_tanh", "relu", "identity"})];
  call.gated = kernel::bool_option(problem, "gated");
  const std::int64_t columns = ffn_columns(call);
  require_shape(problem, slots.gate_up,
                call.transposed ? Shape{call.experts, columns, call.hidden}
                                : Shape{call.experts, call.hidden, columns});
}

// The choice of experts is checked as route does.
void infer_routes(Problem& problem, FfnProblem& call) {
  const FfnSlots& slots = call.slots;
  const Operation& route = find_operation("route");
  std::vector<std::optional<TensorSpec>> specs(route.operands.size());
  specs[kLogits] = problem.spec(slots.logits);
  if (problem.has(slots.bias)) specs[kBias] = problem.spec(slots.bias);
  const Problem routing = make_problem(route, std::move(specs), route_options(problem));
  call.route = routing.as<RouteProblem>();
  require_shape(problem, slots.logits, {call.tokens, call.experts});
  call.top_k = call.route.top_k;
  call.rows = call.route.capacity ? *call.route.capacity * call.experts : call.tokens * call.top_k;
  const std::pair<std::size_t, std::size_t> outputs[] = {{slots.ids, kIds},
                                                         {slots.slots, kSlots},
                                                         {slots.weights, kWeights},
                                                         {slots.counts, kCounts},
                                                         {slots.offsets, kOffsets}};
  for (const auto& [slot, from] : outputs)
    problem.infer_output(slot, routing.spec(from).dtype, routing.spec(from).shape);
  for (const std::size_t slot : {slots.balance, slots.z}) {
    if (problem.requested[slot]) problem.infer_output(slot, DType::kF32, {1});
  }
}

void read_routes(Problem& problem, FfnProblem& call) {
  const FfnSlots& slots = call.slots;
  const Shape ids = problem.spec(slots.ids).shape;
  require(
      problem, ids.size() == 2 && ids[0] == call.tokens && ids[1] >= 1,
      operand_text(problem, slots.ids) + " must be [" + std::to_string(call.tokens) + ", top_k]");
  call.top_k = ids[1];
  for (const std::size_t slot : {slots.ids, slots.slots, slots.weights})
    require_list(problem, slot, ids);
  require_list(problem, slots.offsets, {call.experts + 1});
  call.rows = integer_option(problem, "rows", 0).value_or(saturating_mul(call.tokens, call.top_k));
  require_shape(problem, slots.output, {call.tokens, call.hidden});
  require(problem, problem.spec(slots.output).dtype == problem.dtype,
          operand_text(problem, slots.output) + " must have the dtype of input, " +
              std::string(to_string(problem.dtype)));
  const std::pair<std::size_t, std::size_t> gradients[] = {{slots.grad_input, slots.input},
                                                           {slots.grad_weights, slots.weights},
                                                           {slots.grad_gate_up, slots.gate_up},
                                                           {slots.grad_down, slots.down}};
  for (const auto& [gradient, of] : gradients) {
    if (problem.requested[gradient])
      problem.infer_output(gradient, problem.spec(of).dtype, problem.spec(of).shape);
  }
}

std::vector<Operand> matrices() {
  return {
      ffn_operand(
          "gate_up", Role::kInput, false, "[experts, hidden, 2 inner]", kFloats,
          "the gate's columns, then those of up, or without a gate up's alone; [experts, 2 inner, "
          "hidden] transposed"),
      ffn_operand("down", Role::kInput, false, "[experts, inner, hidden]", kFloats,
                  "[experts, hidden, inner] transposed")};
}

std::vector<OptionInfo> expert_options() {
  return {
      {.name = "transposed",
       .fallback = false,
       .type = "bool",
       .doc = "matrices lie as [experts, out, in]"},
      {.name = "activation",
       .fallback = std::string("silu"),
       .type = "one of silu, gelu, gelu_tanh, relu, identity",
       .doc = "of the gate, or of up where there is none"},
      {.name = "gated",
       .fallback = true,
       .type = "bool",
       .doc = "false: experts are act(input up) down, and gate_up is [experts, hidden, inner]"}};
}

void append(std::vector<Operand>& to, std::vector<Operand> more) {
  for (Operand& operand : more) to.push_back(std::move(operand));
}

Operation finish(Operation operation, const FfnSlots& slots) {
  operation.validate = [slots](Problem& problem) { validate_ffn(problem, slots); };
  operation.reference = reference_ffn;
  if (!slots.backward()) add_ways(operation, list_of(ffn_hopper_way(slots)));
  add_ways(operation, list_of(ffn_way(slots)));
  operation.workload = ffn_workload(slots);
  return operation;
}

Operation ffn_forward(std::vector<OptionInfo> options) {
  const std::vector<DType> f32{DType::kF32}, i32{DType::kI32};
  Operation operation;
  operation.name = "moe_ffn";
  operation.summary =
      "a mixture of experts, each a feed-forward network, gated or not: choice and all";
  operation.formula =
      "output[t] = sum over the kept choices r of t of weights[t, r] (act(input[t] gate_e) * "
      "(input[t] up_e)) down_e, e = expert_ids[t, r]; choices and weights as route's of logits";
  operation.operands = {
      ffn_operand("input", Role::kInput, false, "[tokens, hidden]", kFloats, ""),
      ffn_operand("logits", Role::kInput, false, "[tokens, experts]", kFloats, "of the router")};
  append(operation.operands, matrices());
  append(operation.operands,
         {ffn_operand("bias", Role::kInput, true, "[experts]", f32, "as route's"),
          ffn_operand("output", Role::kOutput, false, "[tokens, hidden]", kFloats,
                      "in the dtype of input"),
          ffn_operand("expert_ids", Role::kOutput, false, "[tokens, top_k]", i32, "as route's"),
          ffn_operand("slots", Role::kOutput, false, "[tokens, top_k]", i32, "as route's"),
          ffn_operand("weights", Role::kOutput, false, "[tokens, top_k]", f32, "as route's"),
          ffn_operand("counts", Role::kOutput, false, "[experts]", i32, "as route's"),
          ffn_operand("offsets", Role::kOutput, false, "[experts + 1]", i32, "as route's"),
          ffn_operand("balance_loss", Role::kOutput, true, "[1]", f32, ""),
          ffn_operand("z_loss", Role::kOutput, true, "[1]", f32, "")});
  operation.options = std::move(options);
  for (OptionInfo& option : expert_options()) operation.options.push_back(std::move(option));
  return finish(std::move(operation), ffn_slots());
}

Operation ffn_backward() {
  const std::vector<DType> f32{DType::kF32}, i32{DType::kI32};
  Operation operation;
  operation.name = "moe_ffn_backward";
  operation.summary = "gradients of moe_ffn; that of logits is route_backward of grad_weights";
  operation.formula =
      "of sum over r of weights[t, r] (act(input[t] gate_e) * (input[t] up_e)) down_e, e = "
      "expert_ids[t, r]";
  operation.operands = {ffn_operand("input", Role::kInput, false, "[tokens, hidden]", kFloats, "")};
  append(operation.operands, matrices());
  append(operation.operands,
         {ffn_operand("expert_ids", Role::kInput, false, "[tokens, top_k]", i32, "that it gave"),
          ffn_operand("slots", Role::kInput, false, "[tokens, top_k]", i32, "that it gave"),
          ffn_operand("weights", Role::kInput, false, "[tokens, top_k]", f32, "that it gave"),
          ffn_operand("offsets", Role::kInput, false, "[experts + 1]", i32, "that it gave"),
          ffn_operand("grad_output", Role::kInput, false, "[tokens, hidden]", kFloats,
                      "in the dtype of input"),
          ffn_operand("grad_input", Role::kOutput, true, "[tokens, hidden]", kFloats, ""),
          ffn_operand("grad_weights", Role::kOutput, true, "[tokens, top_k]", f32, ""),
          ffn_operand("grad_gate_up", Role::kOutput, true, "[experts, hidden, 2 inner]", kFloats,
                      "in the shape and dtype of gate_up"),
          ffn_operand("grad_down", Role::kOutput, true, "[experts, inner, hidden]", kFloats,
                      "in the shape and dtype of down")});
  operation.options = {{.name = "rows",
                        .type = "int",
                        .doc = "of all experts: experts capacity; not set: tokens top_k"}};
  for (OptionInfo& option : expert_options()) operation.options.push_back(std::move(option));
  return finish(std::move(operation), ffn_backward_slots());
}

}  // namespace

FfnSlots ffn_slots() {
  return {.input = 0,
          .gate_up = 2,
          .down = 3,
          .logits = 1,
          .bias = 4,
          .ids = 6,
          .slots = 7,
          .weights = 8,
          .offsets = 10,
          .counts = 9,
          .balance = 11,
          .z = 12,
          .output = 5};
}

FfnSlots ffn_backward_slots() {
  return {.input = 0,
          .gate_up = 1,
          .down = 2,
          .ids = 3,
          .slots = 4,
          .weights = 5,
          .offsets = 6,
          .output = 7,
          .grad_input = 8,
          .grad_weights = 9,
          .grad_gate_up = 10,
          .grad_down = 11};
}

std::int64_t ffn_columns(const FfnProblem& call) {
  return call.gated ? saturating_mul(call.inner, 2) : call.inner;
}

Options route_options(const Problem& problem) {
  Options options;
  for (const OptionInfo& option : find_operation("route").options) {
    if (option.name == "precision") continue;
    const OptionValue& value = problem.option(option.name);
    if (!std::holds_alternative<std::monostate>(value)) options.emplace(option.name, value);
  }
  return options;
}

void validate_ffn(Problem& problem, const FfnSlots& slots) {
  FfnProblem call{.slots = slots};
  problem.dtype = problem.spec(slots.input).dtype;
  read_matrices(problem, call);
  if (slots.backward()) {
    read_routes(problem, call);
  } else {
    infer_routes(problem, call);
    problem.infer_output(slots.output, problem.dtype, {call.tokens, call.hidden});
  }
  require(problem,
          std::max(call.rows, saturating_mul(call.tokens, call.top_k)) < std::int64_t{1} << 31,
          "counts choices and rows to 2^31");
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) +
                ";tokens=" + bucket(call.tokens) + ";hidden=" + bucket(call.hidden) +
                ";inner=" + bucket(call.inner) + ";experts=" + std::to_string(call.experts) +
                ";k=" + std::to_string(call.top_k) + ";rows=" + bucket(call.rows) +
                ";transposed=" + (call.transposed ? "1" : "0") +
                ";gated=" + (call.gated ? "1" : "0");
  problem.set_details(std::move(call));
}

std::vector<Operation> ffn_operations(std::vector<OptionInfo> route_options) {
  return list_of(ffn_forward(std::move(route_options)), ffn_backward());
}

}  // namespace tessera::operations::moe
