// SPDX-License-Identifier: Apache-2.0
// The records of delta_rule, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/recurrence_core/records.hpp"
#include "operations/recurrence_core/typed_call.hpp"
#include "tessera/operations/delta_rule.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> delta_rule() {
  Operation forward = new_record("delta_rule", delta_slots(false, false));
  forward.summary = "linear attention whose keys replace what they hold (arXiv:2406.06484)";
  forward.formula =
      "H_t = H_(t-1) + beta_t key_t (value_t - H_(t-1)^T key_t)^T; "
      "output_t = softmax_scale H_t^T query_t";
  Operation backward = new_record("delta_rule_backward", delta_slots(false, true));
  backward.summary = "gradients of delta_rule";
  backward.formula = kDeltaGradientFormula;
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::recurrence

namespace {

Tensors operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& beta,
                 const DeltaRuleOptions& options) {
  Tensors tensors = operations::recurrence::rows(query, key, value, options.initial_state,
                                                 options.state, options.cu_seqlens);
  operations::add_operand(tensors, "beta", beta);
  return tensors;
}

Options named(const DeltaRuleOptions& options) {
  return operations::recurrence::named_options(options.reverse, options.softmax_scale);
}

}  // namespace

RecurrentResult delta_rule(const Executor& on, const Tensor& query, const Tensor& key,
                           const Tensor& value, const Tensor& beta,
                           const DeltaRuleOptions& options) try {
  return operations::recurrence::run_forward(
      on, "delta_rule", operands(query, key, value, beta, options), named(options));
} catch (...) {
  rethrow_as_error();
}

DeltaRuleGradients delta_rule_backward(const Executor& on, const Tensor& query, const Tensor& key,
                                       const Tensor& value, const Tensor& beta,
                                       const Tensor& grad_output, const DeltaRuleOptions& options,
                                       const DeltaRuleGradientOptions& wanted) try {
  DeltaRuleGradients gradients;
  const operations::WantedGradient all[] = {
      {"query", wanted.query, &gradients.query},
      {"key", wanted.key, &gradients.key},
      {"value", wanted.value, &gradients.value},
      {"beta", wanted.beta, &gradients.beta},
      {"initial_state", wanted.initial_state, &gradients.initial_state}};
  operations::run_gradients(on, "delta_rule_backward", operands(query, key, value, beta, options),
                            grad_output, wanted.grad_final_state, named(options), all);
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
