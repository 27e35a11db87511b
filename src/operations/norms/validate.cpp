// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "kernel/option_access.hpp"
#include "operations/norms/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::norms {
namespace {

void require_contiguous_rows(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

// Gradients take the dtype of what they are the gradient of.
void check_parameter(const Problem& problem, std::size_t slot, std::int64_t dim) {
  if (!problem.has(slot)) return;
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape == Shape{dim},
          operand_text(problem, slot) + " must be [" + std::to_string(dim) + "]");
  require(problem, spec.dtype == problem.dtype || spec.dtype == DType::kF32,
          operand_text(problem, slot) + " must be " + std::string(to_string(problem.dtype)) +
              ", the dtype of input, or f32");
  require_contiguous_rows(problem, slot);
}

// The residual's leading axes beside those of the input, from the right.
Shape check_residual(const Problem& problem, const NormProblem& call) {
  if (!problem.has(kResidual)) return call.leading;
  const TensorSpec& spec = problem.spec(kResidual);
  const std::string sentence = operand_text(problem, kResidual) + " does not broadcast to input " +
                               problem.spec(kInput).to_string() + " along its leading axes";
  require(problem, spec.dtype == problem.dtype,
          operand_text(problem, kResidual) + " must have the dtype of input, " +
              std::string(to_string(problem.dtype)));
  require(problem, !spec.shape.empty() && spec.shape.size() <= call.leading.size() + 1, sentence);
  require(problem, spec.shape.back() == call.dim,
          operand_text(problem, kResidual) + " must have the last axis of input, " +
              std::to_string(call.dim));
  require_contiguous_rows(problem, kResidual);
  Shape leading(call.leading.size(), 1);
  std::copy(spec.shape.begin(), spec.shape.end() - 1,
            leading.end() - static_cast<std::ptrdiff_t>(spec.shape.size() - 1));
  for (std::size_t axis = 0; axis < leading.size(); ++axis)
    require(problem, leading[axis] == 1 || leading[axis] == call.leading[axis], sentence);
  return leading;
}

std::string make_key(const Problem& problem, const NormProblem& call) {
  return "dtype=" + std::string(to_string(problem.dtype)) + ";dim=" + bucket(call.dim) +
         ";rows=" + bucket(call.rows) +
         ";residual=" + std::to_string(problem.has(kResidual) ? 1 : 0) +
         ";sum=" + std::to_string(problem.has(kSum) ? 1 : 0);
}

NormProblem begin(Problem& problem, bool centered, bool backward) {
  const TensorSpec& input = problem.spec(kInput);
  problem.dtype = input.dtype;
  NormProblem call{.centered = centered, .backward = backward};
  require(problem, !input.shape.empty(), operand_text(problem, kInput) + " must have a last axis");
  call.dim = input.shape.back();
  require(problem, call.dim >= 1, operand_text(problem, kInput) + " has rows of no elements");
  require_contiguous_rows(problem, kInput);
  call.leading.assign(input.shape.begin(), input.shape.end() - 1);
  call.rows = 1;
  for (const std::int64_t extent : call.leading) call.rows *= extent;
  require(problem, call.rows < std::int64_t{1} << 31, "input must have fewer than 2^31 rows");
  check_parameter(problem, kWeight, call.dim);
  check_parameter(problem, kBias, call.dim);
  call.residual_leading = check_residual(problem, call);
  call.epsilon = *kernel::number_option(problem, "epsilon");
  if (call.epsilon < 0) kernel::bad_option(problem, "epsilon", "a finite number, not negative");
  return call;
}

// What the option asks for; nothing = the dtype of input.
std::optional<DType> quantised_dtype(const Problem& problem) {
  const auto& name = std::get<std::string>(problem.option("quantise"));
  if (name == "none") return std::nullopt;
  for (const DType dtype : {DType::kI8, DType::kE4M3FN, DType::kE5M2}) {
    if (name == to_string(dtype)) return dtype;
  }
  kernel::bad_option(problem, "quantise", "one of none, i8, e4m3fn, e5m2");
}

void finish(Problem& problem, NormProblem call) {
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (problem.has(slot)) require_contiguous_rows(problem, slot);
  }
  problem.key = make_key(problem, call);
  problem.set_details(std::move(call));
}

}  // namespace

std::int64_t NormProblem::residual_row(std::int64_t row) const {
  std::int64_t result = 0, step = 1;
  for (std::size_t axis = leading.size(); axis-- > 0;) {
    const std::int64_t place = row % leading[axis];
    row /= leading[axis];
    if (residual_leading[axis] == 1) continue;
    result += place * step;
    step *= residual_leading[axis];
  }
  return result;
}

void validate_norm(Problem& problem, bool centered) {
  NormProblem call = begin(problem, centered, false);
  const std::optional<DType> codes = quantised_dtype(problem);
  problem.infer_output(kOutput, codes.value_or(problem.dtype), problem.spec(kInput).shape);
  require(problem, codes || !problem.requested[kScale],
          "scale belongs to an output that is quantised");
  if (codes) {
    problem.requested[kScale] = true;
    Shape rows = call.leading;
    rows.push_back(1);
    problem.infer_output(kScale, DType::kF32, std::move(rows));
  }
  problem.infer_output(kSum, problem.dtype, problem.spec(kInput).shape);
  finish(problem, std::move(call));
}

void validate_norm_backward(Problem& problem, bool centered) {
  NormProblem call = begin(problem, centered, true);
  const TensorSpec& input = problem.spec(kInput);
  for (const std::size_t slot : {std::size_t{kGradOutput}, std::size_t{kGradSum}}) {
    if (!problem.has(slot)) continue;
    require(problem,
            problem.spec(slot).shape == input.shape && problem.spec(slot).dtype == input.dtype,
            operand_text(problem, slot) + " must be " +
                TensorSpec{.dtype = input.dtype, .shape = input.shape}.to_string());
  }
  const auto gradient_of = [&](std::size_t gradient, std::size_t operand) {
    if (!problem.requested[gradient]) return;
    const std::string& name = problem.operation->operands[operand].name;
    require(problem, problem.has(operand),
            problem.operation->operands[gradient].name + " is wanted, but the call has no " + name);
    problem.infer_output(gradient, problem.spec(operand).dtype, problem.spec(operand).shape);
  };
  gradient_of(kGradInput, kInput);
  gradient_of(kGradWeight, kWeight);
  gradient_of(kGradBias, kBias);
  gradient_of(kGradResidual, kResidual);
  finish(problem, std::move(call));
}

}  // namespace tessera::operations::norms
