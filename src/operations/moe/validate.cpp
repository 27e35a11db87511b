// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <limits>
#include <string>
#include <utility>

#include "kernel/option_access.hpp"
#include "operations/moe/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::moe {
namespace {

void require_contiguous(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return;
  require(problem, problem.spec(slot).is_contiguous(),
          problem.operation->operands[slot].name + " must be contiguous");
}

void require_rows(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape[1] <= 1 || spec.strides[1] == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

// What forward and backward say alike.
RouteProblem begin(Problem& problem) {
  const TensorSpec& logits = problem.spec(kLogits);
  problem.dtype = logits.dtype;
  require(problem, logits.shape.size() == 2,
          operand_text(problem, kLogits) + " must be [tokens, experts]");
  require_rows(problem, kLogits);
  RouteProblem call{.tokens = logits.shape[0], .experts = logits.shape[1]};
  call.sigmoid = kernel::choice_option(problem, "score", {"softmax", "sigmoid"}) == 1;
  call.renormalise = kernel::bool_option(problem, "renormalise");
  call.scale = *kernel::number_option(problem, "scale");
  call.noise = *kernel::number_option(problem, "noise");
  if (call.noise < 0) kernel::bad_option(problem, "noise", "a finite number, not negative");
  call.seed = static_cast<std::uint64_t>(
      *integer_option(problem, "seed", std::numeric_limits<std::int64_t>::min()));
  call.balance = *kernel::number_option(problem, "balance_coefficient");
  call.z = *kernel::number_option(problem, "z_coefficient");
  return call;
}

void check_sizes(const Problem& problem, const RouteProblem& call) {
  require(
      problem, call.experts >= 1 && call.top_k <= call.experts,
      "chooses " + std::to_string(call.top_k) + " of " + std::to_string(call.experts) + " experts");
  require(problem, call.tokens * call.experts < std::int64_t{1} << 31,
          operand_text(problem, kLogits) + " has 2^31 elements or more");
}

std::string key_of(const Problem& problem, const RouteProblem& call) {
  return "dtype=" + std::string(to_string(problem.dtype)) + ";tokens=" + bucket(call.tokens) +
         ";experts=" + std::to_string(call.experts) + ";k=" + std::to_string(call.top_k) +
         ";groups=" + std::to_string(call.groups) + ";sigmoid=" + (call.sigmoid ? "1" : "0") +
         ";noise=" + (call.noise > 0 ? "1" : "0");
}

void finish_forward(Problem& problem, RouteProblem call) {
  call.top_k = *integer_option(problem, "top_k", 1);
  call.groups = *integer_option(problem, "groups", 1);
  call.top_groups = integer_option(problem, "top_groups", 1).value_or(call.groups);
  call.capacity = integer_option(problem, "capacity", 1);
  check_sizes(problem, call);
  require(problem, call.experts % call.groups == 0 && call.top_groups <= call.groups,
          "keeps " + std::to_string(call.top_groups) + " of " + std::to_string(call.groups) +
              " groups of " + std::to_string(call.experts) + " experts");
  require(problem, !call.capacity || *call.capacity * call.experts < std::int64_t{1} << 31,
          "has a capacity of 2^31 rows or more");
  if (problem.has(kBias)) {
    require_shape(problem, kBias, {call.experts});
    require_contiguous(problem, kBias);
  }
  problem.infer_output(kIds, DType::kI32, {call.tokens, call.top_k});
  problem.infer_output(kSlots, DType::kI32, {call.tokens, call.top_k});
  problem.infer_output(kWeights, DType::kF32, {call.tokens, call.top_k});
  problem.infer_output(kCounts, DType::kI32, {call.experts});
  problem.infer_output(kOffsets, DType::kI32, {call.experts + 1});
  problem.infer_output(kBalanceLoss, DType::kF32, {1});
  problem.infer_output(kZLoss, DType::kF32, {1});
  for (const std::size_t slot : {kIds, kSlots, kWeights, kCounts, kOffsets, kBalanceLoss, kZLoss})
    require_contiguous(problem, slot);
  problem.key = key_of(problem, call) + ";bias=" + (problem.has(kBias) ? "1" : "0") +
                ";losses=" + (problem.has(kBalanceLoss) ? "1" : "0") +
                (problem.has(kZLoss) ? "1" : "0");
  problem.set_details(call);
}

void finish_backward(Problem& problem, RouteProblem call) {
  const TensorSpec& ids = problem.spec(kOfIds);
  require(problem, ids.shape.size() == 2 && ids.shape[0] == call.tokens && ids.shape[1] >= 1,
          operand_text(problem, kOfIds) + " must be [" + std::to_string(call.tokens) + ", top_k]");
  call.top_k = ids.shape[1];
  check_sizes(problem, call);
  require_shape(problem, kOfSlots, ids.shape);
  require_shape(problem, kGradWeights, ids.shape);
  for (const std::size_t slot : {kGradBalance, kGradZ}) {
    if (problem.has(slot)) require_shape(problem, slot, {1});
  }
  for (const std::size_t slot : {kOfIds, kOfSlots, kGradWeights, kGradBalance, kGradZ})
    require_contiguous(problem, slot);
  problem.infer_output(kGradLogits, problem.dtype, problem.spec(kOfLogits).shape);
  require_rows(problem, kGradLogits);
  problem.key = key_of(problem, call) + ";losses=" + (problem.has(kGradBalance) ? "1" : "0") +
                (problem.has(kGradZ) ? "1" : "0");
  problem.set_details(call);
}

}  // namespace

void validate_route(Problem& problem, bool backward) {
  RouteProblem call = begin(problem);
  call.backward = backward;
  if (backward) {
    finish_backward(problem, call);
  } else {
    finish_forward(problem, call);
  }
}

}  // namespace tessera::operations::moe
