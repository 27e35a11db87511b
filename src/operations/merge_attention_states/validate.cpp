// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>
#include <utility>

#include "operations/merge_attention_states/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention_states {
namespace {

Shape without_parts(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

void require_rows(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

void require_dtype(const Problem& problem, std::size_t slot) {
  require(problem, problem.spec(slot).dtype == problem.dtype,
          operand_text(problem, slot) + " must have the dtype of outputs, " +
              std::string(to_string(problem.dtype)));
}

}  // namespace

StateStrides strides_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const auto& call = problem.as<StatesProblem>();
  const TensorSpec& spec = problem.spec(slot);
  const bool has_parts =
      slot == kOutputs || slot == kSums || slot == kGradOutputs || slot == kGradSums;
  const bool is_sum = slot == kSums || slot == kOtherSum || slot == kMerged || slot == kGradSums ||
                      slot == kGradOtherSum;
  StateStrides result{.offset = spec.offset};
  std::size_t axis = 0;
  if (has_parts) result.part = spec.strides[axis++];
  if (call.batched) result.batch = spec.strides[axis++];
  const bool heads_first = is_sum && call.batched;
  result.token = spec.strides[axis + (heads_first ? 1 : 0)];
  result.head = spec.strides[axis + (heads_first ? 0 : 1)];
  return result;
}

void validate_states(Problem& problem, bool backward) {
  const TensorSpec& outputs = problem.spec(kOutputs);
  problem.dtype = outputs.dtype;
  const std::size_t rank = outputs.shape.size();
  require(problem, rank == 4 || rank == 5,
          operand_text(problem, kOutputs) +
              " must be [parts, tokens, heads, dim] or [parts, batch, seq, heads, dim]");
  const Shape& shape = outputs.shape;
  StatesProblem call{.backward = backward,
                     .batched = rank == 5,
                     .parts = shape[0],
                     .batch = rank == 5 ? shape[1] : 1,
                     .seq = shape[rank - 3],
                     .heads = shape[rank - 2],
                     .dim = shape[rank - 1],
                     .has_other = problem.has(kOther)};
  require(problem, call.parts >= 1 && call.dim >= 1,
          operand_text(problem, kOutputs) + " has no parts or no features");
  require(problem, call.rows() < std::int64_t{1} << 31,
          operand_text(problem, kOutputs) + " has 2^31 rows or more");
  Shape sums{shape[0], shape[1], shape[2]};
  if (call.batched) sums = {shape[0], shape[1], shape[3], shape[2]};
  require_rows(problem, kOutputs);
  require_shape(problem, kSums, sums);
  require(problem, problem.has(kOther) == problem.has(kOtherSum),
          "other_output and other_log_sum_exp come together");
  if (call.has_other) {
    require_shape(problem, kOther, without_parts(shape));
    require_shape(problem, kOtherSum, without_parts(sums));
    require_dtype(problem, kOther);
    require_rows(problem, kOther);
  }
  if (backward) {
    require_shape(problem, kOutput, without_parts(shape));
    require_dtype(problem, kOutput);
    if (problem.has(kMerged)) require_shape(problem, kMerged, without_parts(sums));
    problem.infer_output(kGradOutputs, problem.dtype, shape);
    problem.infer_output(kGradSums, DType::kF32, sums);
    for (const std::size_t slot : {kGradOther, kGradOtherSum}) {
      require(
          problem, call.has_other || !problem.requested[slot],
          problem.operation->operands[slot].name + " is wanted, but the call has no other part");
      problem.requested[slot] = call.has_other;
    }
    problem.infer_output(kGradOther, problem.dtype, without_parts(shape));
    problem.infer_output(kGradOtherSum, DType::kF32, without_parts(sums));
  } else {
    problem.infer_output(kOutput, problem.dtype, without_parts(shape));
    problem.infer_output(kMerged, DType::kF32, without_parts(sums));
  }
  for (const std::size_t slot : {kOutput, kGradOutputs, kGradOther}) {
    if (problem.has(slot)) require_rows(problem, slot);
  }
  problem.key = "dtype=" + std::string(to_string(problem.dtype)) + ";rows=" + bucket(call.rows()) +
                ";dim=" + bucket(call.dim) +
                ";parts=" + std::to_string(call.parts + (call.has_other ? 1 : 0));
  problem.set_details(call);
}

}  // namespace tessera::operations::attention_states
