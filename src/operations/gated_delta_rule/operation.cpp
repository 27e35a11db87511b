// SPDX-License-Identifier: Apache-2.0
// The records of gated_delta_rule, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/recurrence_core/records.hpp"
#include "operations/recurrence_core/typed_call.hpp"
#include "tessera/operations/gated_delta_rule.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> gated_delta_rule() {
  Operation forward = new_record("gated_delta_rule", delta_slots(true, false));
  forward.summary = "a delta rule whose state decays (arXiv:2412.06464)";
  forward.formula =
      "P_t = exp(g_t) H_(t-1); H_t = P_t + beta_t key_t (value_t - P_t^T key_t)^T; "
      "output_t = softmax_scale H_t^T query_t";
  Operation backward = new_record("gated_delta_rule_backward", delta_slots(true, true));
  backward.summary = "gradients of gated_delta_rule";
  backward.formula = kDeltaGradientFormula;
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::recurrence

namespace {

Tensors operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& beta,
                 const GatedDeltaRuleOptions& options) {
  Tensors tensors = operations::recurrence::rows(query, key, value, options.initial_state,
                                                 options.state, options.cu_seqlens);
  operations::add_operand(tensors, "beta", beta);
  operations::add_operand(tensors, "g", options.g);
  return tensors;
}

Options named(const GatedDeltaRuleOptions& options) {
  return operations::recurrence::named_options(options.reverse, options.softmax_scale);
}

}  // namespace

RecurrentResult gated_delta_rule(const Executor& on, const Tensor& query, const Tensor& key,
                                 const Tensor& value, const Tensor& beta,
                                 const GatedDeltaRuleOptions& options) try {
  return operations::recurrence::run_forward(
      on, "gated_delta_rule", operands(query, key, value, beta, options), named(options));
} catch (...) {
  rethrow_as_error();
}

GatedDeltaRuleGradients gated_delta_rule_backward(const Executor& on, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& beta, const Tensor& grad_output,
                                                  const GatedDeltaRuleOptions& options,
                                                  const GatedDeltaRuleGradientOptions& wanted) try {
  GatedDeltaRuleGradients gradients;
  const operations::WantedGradient all[] = {
      {"query", wanted.query, &gradients.query},
      {"key", wanted.key, &gradients.key},
      {"value", wanted.value, &gradients.value},
      {"beta", wanted.beta, &gradients.beta},
      {"g", wanted.g, &gradients.g},
      {"initial_state", wanted.initial_state, &gradients.initial_state}};
  operations::run_gradients(on, "gated_delta_rule_backward",
                            operands(query, key, value, beta, options), grad_output,
                            wanted.grad_final_state, named(options), all);
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
