// SPDX-License-Identifier: Apache-2.0
// The records of mixtures of experts.
#include <utility>

#include "operations/moe/ffn.hpp"
#include "operations/moe/problem.hpp"
#include "operations/moe/rows.hpp"

namespace tessera::operations::moe {
namespace {

Operand operand(std::string name, Role role, bool optional, std::string shape, DType dtype,
                std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = {dtype},
          .doc = std::move(doc)};
}

Operand logits(std::string name, Role role, std::string doc) {
  Operand result =
      operand(std::move(name), role, false, "[tokens, experts]", DType::kF32, std::move(doc));
  result.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  return result;
}

std::vector<OptionInfo> score_options() {
  return {{.name = "score",
           .fallback = std::string("softmax"),
           .type = "one of softmax, sigmoid",
           .doc = "of logits; a sigmoid is at least 1e-6"},
          {.name = "renormalise",
           .fallback = true,
           .type = "bool",
           .doc = "weights are scores over the sum of those of the token's kept choices"},
          {.name = "scale", .fallback = 1.0, .type = "float", .doc = "of weights"},
          {.name = "noise",
           .fallback = 0.0,
           .type = "float",
           .doc = "standard deviation of what is added to logits"},
          {.name = "seed", .fallback = std::int64_t{0}, .type = "int", .doc = "of the noise"},
          {.name = "balance_coefficient",
           .fallback = 0.01,
           .type = "float",
           .doc = "of the balance loss"},
          {.name = "z_coefficient", .fallback = 0.001, .type = "float", .doc = "of the z loss"}};
}

Operation route() {
  Operation operation;
  operation.name = "route";
  operation.summary = "chooses experts for tokens, and the places that the tokens have with them";
  operation.formula =
      "weights[t, r] = scale score[t, e] / sum of the scores of t's kept choices, e = "
      "expert_ids[t, r] the r-th best";
  operation.operands = {
      logits("logits", Role::kInput, "any stride between rows"),
      operand("bias", Role::kInput, true, "[experts]", DType::kF32,
              "joins scores when experts are chosen, not their weights; -inf excludes an expert"),
      operand("expert_ids", Role::kOutput, false, "[tokens, top_k]", DType::kI32,
              "best first; -1: no expert is left"),
      operand("slots", Role::kOutput, false, "[tokens, top_k]", DType::kI32,
              "place among the tokens of the expert, in order of tokens; -1: dropped"),
      operand("weights", Role::kOutput, false, "[tokens, top_k]", DType::kF32,
              "0 where a choice is dropped"),
      operand("counts", Role::kOutput, false, "[experts]", DType::kI32, "tokens that have a place"),
      operand(
          "offsets", Role::kOutput, false, "[experts + 1]", DType::kI32,
          "the row at which an expert's places begin: sums of counts, or multiples of capacity"),
      operand("balance_loss", Role::kOutput, true, "[1]", DType::kF32, ""),
      operand("z_loss", Role::kOutput, true, "[1]", DType::kF32, "")};
  operation.options = score_options();
  const std::vector<OptionInfo> more{
      {.name = "top_k", .fallback = std::int64_t{2}, .type = "int", .doc = "experts of a token"},
      {.name = "groups",
       .fallback = std::int64_t{1},
       .type = "int",
       .doc = "of experts, by their best score, or the sum of their two best with a bias"},
      {.name = "top_groups", .fallback = {}, .type = "int", .doc = "that are kept; all of them"},
      {.name = "capacity",
       .fallback = {},
       .type = "int",
       .doc = "places of an expert; not set: dropless"}};
  operation.options.insert(operation.options.end(), more.begin(), more.end());
  operation.validate = [](Problem& problem) { validate_route(problem, false); };
  operation.reference = reference_route;
  add_ways(operation, list_of(route_way()));
  operation.workload = route_workload(false);
  return operation;
}

Operation route_backward() {
  Operation operation;
  operation.name = "route_backward";
  operation.summary = "gradient of route's logits";
  operation.formula =
      "through weights, balance loss and z loss; none through the choice of experts";
  operation.operands = {
      logits("logits", Role::kInput, "of the forward call"),
      operand("expert_ids", Role::kInput, false, "[tokens, top_k]", DType::kI32, "that it gave"),
      operand("slots", Role::kInput, false, "[tokens, top_k]", DType::kI32, "that it gave"),
      operand("grad_weights", Role::kInput, false, "[tokens, top_k]", DType::kF32, ""),
      operand("grad_balance_loss", Role::kInput, true, "[1]", DType::kF32, ""),
      operand("grad_z_loss", Role::kInput, true, "[1]", DType::kF32, ""),
      logits("grad_logits", Role::kOutput, "")};
  operation.options = score_options();
  operation.validate = [](Problem& problem) { validate_route(problem, true); };
  operation.reference = reference_route_backward;
  add_ways(operation, list_of(route_backward_way()));
  operation.workload = route_workload(true);
  return operation;
}

}  // namespace

std::vector<Operation> moe() {
  std::vector<Operation> operations{route(), route_backward(), rows_operation(Moves::kDispatch),
                                    rows_operation(Moves::kCombine),
                                    rows_operation(Moves::kCombineBackward)};
  for (Operation& operation : ffn_operations(operations.front().options))
    operations.push_back(std::move(operation));
  return operations;
}

}  // namespace tessera::operations::moe
