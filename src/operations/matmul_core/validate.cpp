// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/tensors/checked.hpp"
#include "kernel/option_access.hpp"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr Activation kActivations[] = {{MATMUL_NONE},      {MATMUL_RELU}, {MATMUL_GELU},
                                       {MATMUL_GELU_TANH}, {MATMUL_SILU}, {MATMUL_SILU, true},
                                       {MATMUL_GELU, true}};

bool option_is_set(const Problem& problem, const char* name) {
  return kernel::bool_option(problem, name);
}

// Of an operand that is a matrix with batches before it.
std::int64_t rows(const TensorSpec& spec) { return spec.shape[spec.shape.size() - 2]; }
std::int64_t columns(const TensorSpec& spec) { return spec.shape.back(); }

void require_matrix(const Problem& problem, std::size_t slot) {
  require(problem, problem.spec(slot).shape.size() >= 2,
          operand_text(problem, slot) + " must be a matrix: [..., rows, columns]");
}

// Leading axes of a and b, broadcast to one another from the right.
Shape broadcast(const Problem& problem, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(problem, of_a == of_b || of_a == 1 || of_b == 1,
            "the leading axes of a and b do not broadcast to one another: " +
                problem.spec(problem.operation->slot("a")).to_string() + " and " +
                problem.spec(problem.operation->slot("b")).to_string());
    result[result.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

void read_shapes(const Problem& problem, MatmulProblem& call) {
  const MatmulSlots& slots = call.slots;
  const TensorSpec& a = problem.spec(slots.a);
  const TensorSpec& b = problem.spec(slots.b);
  const auto& name = [&](std::size_t slot) { return problem.operation->operands[slot].name; };
  std::int64_t b_terms = 0;
  if (slots.linear) {
    require(problem, !a.shape.empty(), operand_text(problem, slots.a) + " must have a last axis");
    require(problem, b.shape.size() == 2,
            operand_text(problem, slots.b) + " must be [out_features, in_features]");
    call.transpose_b = true;
    if (a.shape.size() > 1) call.batch.assign(a.shape.begin(), a.shape.end() - 2);
    call.m = a.shape.size() > 1 ? rows(a) : 1;
    call.k = columns(a);
  } else {
    require_matrix(problem, slots.a);
    require_matrix(problem, slots.b);
    call.transpose_a = option_is_set(problem, "transpose_a");
    call.transpose_b = option_is_set(problem, "transpose_b");
    call.batch = broadcast(problem, Shape(a.shape.begin(), a.shape.end() - 2),
                           Shape(b.shape.begin(), b.shape.end() - 2));
    call.m = call.transpose_a ? columns(a) : rows(a);
    call.k = call.transpose_a ? rows(a) : columns(a);
  }
  call.columns = call.transpose_b ? rows(b) : columns(b);
  b_terms = call.transpose_b ? columns(b) : rows(b);
  require(problem, call.k == b_terms,
          name(slots.a) + " has " + std::to_string(call.k) + " columns to multiply and " +
              name(slots.b) + " " + std::to_string(b_terms) + " rows: " + a.to_string() + " and " +
              b.to_string());
  call.n = call.columns;
  if (!call.activation.paired) return;
  require(problem, call.columns % 2 == 0,
          "activation '" + std::get<std::string>(problem.option("activation")) +
              "' takes pairs of columns, and " + name(slots.b) + " has " +
              std::to_string(call.columns));
  call.n = call.columns / 2;
}

Shape with_matrix(const Problem& problem, const MatmulProblem& call, std::int64_t columns) {
  Shape shape = call.batch;
  // A vector times a matrix is a vector.
  if (!call.slots.linear || problem.spec(call.slots.a).shape.size() > 1) shape.push_back(call.m);
  shape.push_back(columns);
  return shape;
}

void check_bias(const Problem& problem, const MatmulProblem& call) {
  const std::size_t slot = call.slots.bias;
  if (!problem.has(slot)) return;
  const Shape& shape = problem.spec(slot).shape;
  const Shape whole = with_matrix(problem, call, call.columns);
  bool fits = shape.size() <= whole.size() && !shape.empty();
  for (std::size_t i = 1; fits && i <= shape.size(); ++i)
    fits = shape[shape.size() - i] == 1 || shape[shape.size() - i] == whole[whole.size() - i];
  require(problem, fits,
          operand_text(problem, slot) + " does not broadcast to the product, " +
              TensorSpec{.dtype = call.output, .shape = whole}.to_string());
}

void check_shape(const Problem& problem, std::size_t slot, const Shape& shape) {
  if (problem.has(slot)) require_shape(problem, slot, shape);
}

DType output_type(const Problem& problem, const MatmulSlots& slots) {
  const OptionValue& value = problem.option("output_dtype");
  if (std::holds_alternative<std::monostate>(value))
    return output_of_factors(problem, slots.a, {slots.scale_a, slots.scale_b});
  const std::vector<DType> types{DType::kF32, DType::kF16, DType::kBF16, DType::kI32};
  return types[kernel::choice_option(problem, "output_dtype", {"f32", "f16", "bf16", "i32"})];
}

// What the option asks for; nothing = floats, or sums as they are.
std::optional<DType> code_type(const Problem& problem) {
  const std::size_t choice =
      kernel::choice_option(problem, "quantise", {"none", "i8", "e4m3fn", "e5m2"});
  if (choice == 0) return std::nullopt;
  require(problem, std::holds_alternative<std::monostate>(problem.option("output_dtype")),
          "output_dtype and quantise both say what output is");
  constexpr DType kCodes[] = {DType::kI8, DType::kE4M3FN, DType::kE5M2};
  return kCodes[choice - 1];
}

void infer_outputs(Problem& problem, const MatmulProblem& call, const Shape& output) {
  const std::size_t scale = call.slots.scale;
  problem.infer_output(call.slots.output, call.output, output);
  require(problem, call.quantised || !problem.requested[scale],
          "scale belongs to an output that is quantised");
  if (!call.quantised) return;
  require(problem, call.n > 0, "rows of codes share a scale, and those of output are empty");
  problem.requested[scale] = true;
  Shape rows = output;
  rows.back() = 1;
  problem.infer_output(scale, DType::kF32, std::move(rows));
}

// What only some types of operands have.
void check_types(const Problem& problem, const MatmulProblem& call) {
  const MatmulSlots& slots = call.slots;
  require_factors(problem, slots.a, slots.b, {slots.scale_a, slots.scale_b}, call.k);
  if (call.output != DType::kI32) return;
  bool alone =
      problem.dtype == DType::kI8 && call.alpha == 1 && call.activation.kind == MATMUL_NONE;
  for (const std::size_t slot :
       {slots.scale_a, slots.scale_b, slots.bias, slots.addend, slots.gate, slots.residual})
    alone = alone && !problem.has(slot);
  require(problem, alone,
          "output_dtype 'i32' gives the sums of products of i8 as they are, with nothing behind "
          "them: no scales, alpha, bias, activation or other operands");
}

std::string make_key(const Problem& problem, const MatmulProblem& call) {
  std::string batches = "1";
  std::int64_t count = 1;
  for (const std::int64_t extent : call.batch) count = saturating_mul(count, extent);
  batches = bucket(count);
  const auto type = [&](std::size_t slot) {
    return std::string(to_string(problem.spec(slot).dtype));
  };
  const auto unit = [&](std::size_t slot) {
    return problem.spec(slot).strides.back() == 1 ? "n" : "t";
  };
  return "a=" + type(call.slots.a) + ";b=" + type(call.slots.b) +
         ";out=" + std::string(to_string(call.output)) + ";m=" + bucket(call.m) +
         ";n=" + bucket(call.columns) + ";k=" + bucket(call.k) + ";batches=" + batches +
         ";turns=" + unit(call.slots.a) + unit(call.slots.b) + (call.transpose_a ? "t" : "n") +
         (call.transpose_b ? "t" : "n") + ";activation=" + std::to_string(call.activation.kind) +
         (call.activation.paired ? "p" : "") +
         ";gate=" + std::to_string(problem.has(call.slots.gate) ? 1 : 0) +
         (call.scale_a.terms || call.scale_b.terms ? ";scales=terms" : "");
}

double finite_option(const Problem& problem, const char* name) {
  const double value = *kernel::number_option(problem, name);
  if (!std::isfinite(static_cast<float>(value)))
    kernel::bad_option(problem, name, "a number that float holds");
  return static_cast<float>(value);
}

void infer_gradients(Problem& problem, const MatmulSlots& slots) {
  const std::pair<std::size_t, std::size_t> pairs[] = {{slots.grad_a, slots.a},
                                                       {slots.grad_b, slots.b},
                                                       {slots.grad_bias, slots.bias},
                                                       {slots.grad_addend, slots.addend},
                                                       {slots.grad_gate, slots.gate}};
  for (const auto& [gradient, operand] : pairs) {
    if (gradient == kNoOperand || !problem.requested[gradient]) continue;
    const auto& name = [&](std::size_t slot) { return problem.operation->operands[slot].name; };
    require(problem, problem.has(operand),
            name(gradient) + " is wanted, but the call has no " + name(operand));
    problem.infer_output(gradient, problem.spec(operand).dtype, problem.spec(operand).shape);
  }
}

}  // namespace

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names{"none", "relu",   "gelu", "gelu_tanh",
                                              "silu", "swiglu", "geglu"};
  return names;
}

MatmulSlots matmul_slots() {
  return {
      .addend = 3, .gate = 4, .residual = 5, .output = 8, .scale_a = 6, .scale_b = 7, .scale = 9};
}

MatmulSlots matmul_backward_slots() {
  return {.addend = 3,
          .gate = 4,
          .grad_output = 5,
          .grad_a = 6,
          .grad_b = 7,
          .grad_bias = 8,
          .grad_addend = 9,
          .grad_gate = 10};
}

MatmulSlots linear_slots() {
  return {.gate = 3,
          .residual = 4,
          .output = 7,
          .scale_a = 5,
          .scale_b = 6,
          .scale = 8,
          .linear = true};
}

MatmulSlots linear_backward_slots() {
  return {.gate = 3,
          .grad_output = 4,
          .grad_a = 5,
          .grad_b = 6,
          .grad_bias = 7,
          .grad_gate = 8,
          .linear = true};
}

void validate_matmul(Problem& problem, const MatmulSlots& slots) {
  MatmulProblem call{.slots = slots};
  problem.dtype = problem.spec(slots.a).dtype;
  call.activation = kActivations[kernel::choice_option(problem, "activation", activation_names())];
  call.alpha = slots.linear ? 1.0 : finite_option(problem, "alpha");
  call.beta = slots.addend == kNoOperand ? 1.0 : finite_option(problem, "beta");
  call.output =
      slots.backward() ? problem.spec(slots.grad_output).dtype : output_type(problem, slots);
  if (!slots.backward()) {
    const std::optional<DType> codes = code_type(problem);
    call.quantised = codes.has_value();
    call.output = codes.value_or(call.output);
  }
  read_shapes(problem, call);
  check_types(problem, call);
  if (!slots.backward()) {
    call.scale_a =
        read_scale(problem, slots.scale_a, slots.a,
                   call.transpose_a ? TermAxis::kRows : TermAxis::kColumns, MATMUL_BLOCK);
    call.scale_b =
        read_scale(problem, slots.scale_b, slots.b,
                   call.transpose_b ? TermAxis::kColumns : TermAxis::kRows, MATMUL_BLOCK);
  }
  check_bias(problem, call);
  const Shape output = with_matrix(problem, call, call.n);
  check_shape(problem, slots.addend, with_matrix(problem, call, call.columns));
  check_shape(problem, slots.gate, output);
  check_shape(problem, slots.residual, output);
  check_shape(problem, slots.grad_output, output);
  if (slots.backward()) {
    infer_gradients(problem, slots);
  } else {
    infer_outputs(problem, call, output);
  }
  problem.key = make_key(problem, call);
  problem.set_details(std::move(call));
}

}  // namespace tessera::operations::matmul
