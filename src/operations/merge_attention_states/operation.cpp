// SPDX-License-Identifier: Apache-2.0
// The records of merge_attention_states and its gradients, and their typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/merge_attention_states/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/merge_attention_states.hpp"

namespace tessera {
namespace operations::attention_states {
namespace {

Operand states(std::string name, Role role, bool optional, bool parts, std::string doc) {
  const std::string part = parts ? "parts, " : "";
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = "[" + part + "(batch,) seq, heads, dim]",
          .dtypes = {DType::kF32, DType::kF16, DType::kBF16},
          .doc = std::move(doc)};
}

Operand sums(std::string name, Role role, bool optional, bool parts, std::string doc) {
  const std::string part = parts ? "parts, " : "";
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = "[" + part + "tokens, heads] or [" + part + "batch, heads, seq]",
          .dtypes = {DType::kF32},
          .doc = std::move(doc)};
}

Operation new_operation(bool backward) {
  Operation operation;
  operation.name = backward ? "merge_attention_states_backward" : "merge_attention_states";
  operation.operands = {
      states("outputs", Role::kInput, false, true, "attention over each part of the keys"),
      sums("log_sum_exps", Role::kInput, false, true, "of each part's rows; -inf: it saw no key"),
      states("other_output", Role::kInput, true, false, "one part more, which lies elsewhere"),
      sums("other_log_sum_exp", Role::kInput, true, false, "of that part")};
  operation.validate = [backward](Problem& problem) { validate_states(problem, backward); };
  operation.reference = reference_states;
  add_ways(operation, list_of(states_way(backward)));
  operation.workload = states_workload(backward);
  return operation;
}

Operation forward() {
  Operation operation = new_operation(false);
  operation.summary = "attention over parts of the keys, put together by their log-sum-exps";
  operation.formula =
      "log_sum_exp = log sum_p exp(log_sum_exps[p]); output = sum_p exp(log_sum_exps[p] - "
      "log_sum_exp) outputs[p]; 0 where no part saw a key";
  operation.operands.push_back(
      states("output", Role::kOutput, false, false, "in the dtype of outputs"));
  operation.operands.push_back(sums("log_sum_exp", Role::kOutput, true, false, "over all parts"));
  return operation;
}

Operation backward() {
  Operation operation = new_operation(true);
  operation.summary = "gradients of merge_attention_states";
  operation.formula =
      "w[p] = exp(log_sum_exps[p] - log_sum_exp); d[p] = grad_output . outputs[p]; "
      "grad_outputs[p] = w[p] grad_output; grad_log_sum_exps[p] = w[p] (d[p] - sum_q w[q] d[q] + "
      "grad_log_sum_exp)";
  operation.operands.push_back(
      states("grad_output", Role::kInput, false, false, "in the dtype of outputs"));
  operation.operands.push_back(
      sums("grad_log_sum_exp", Role::kInput, true, false, "0 where it is left out"));
  operation.operands.push_back(states("grad_outputs", Role::kOutput, false, true, ""));
  operation.operands.push_back(sums("grad_log_sum_exps", Role::kOutput, false, true, ""));
  operation.operands.push_back(
      states("grad_other_output", Role::kOutput, true, false, "where there is another part"));
  operation.operands.push_back(
      sums("grad_other_log_sum_exp", Role::kOutput, true, false, "where there is another part"));
  return operation;
}

}  // namespace

std::vector<Operation> merge_attention_states() { return list_of(forward(), backward()); }

}  // namespace operations::attention_states

namespace {

Tensors operands(const AttentionStates& parts, const AttentionStates& other) {
  Tensors tensors{{"outputs", parts.output}, {"log_sum_exps", parts.log_sum_exp}};
  if (other.output) tensors.emplace("other_output", other.output);
  if (other.log_sum_exp) tensors.emplace("other_log_sum_exp", other.log_sum_exp);
  return tensors;
}

}  // namespace

AttentionStates merge_attention_states(const Executor& on, const AttentionStates& parts,
                                       const AttentionStates& other) try {
  Tensors results =
      on.run("merge_attention_states", operands(parts, other), {}, {"output", "log_sum_exp"});
  return {.output = std::move(results.at("output")),
          .log_sum_exp = std::move(results.at("log_sum_exp"))};
} catch (...) {
  rethrow_as_error();
}

MergeGradients merge_attention_states_backward(const Executor& on, const AttentionStates& parts,
                                               const AttentionStates& gradient,
                                               const AttentionStates& other) try {
  Tensors tensors = operands(parts, other);
  tensors.emplace("grad_output", gradient.output);
  if (gradient.log_sum_exp) tensors.emplace("grad_log_sum_exp", gradient.log_sum_exp);
  Tensors results = on.run("merge_attention_states_backward", std::move(tensors));
  MergeGradients gradients{.parts = {.output = std::move(results.at("grad_outputs")),
                                     .log_sum_exp = std::move(results.at("grad_log_sum_exps"))}};
  if (other.output) {
    gradients.other = {.output = std::move(results.at("grad_other_output")),
                       .log_sum_exp = std::move(results.at("grad_other_log_sum_exp"))};
  }
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
