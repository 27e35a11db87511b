// SPDX-License-Identifier: Apache-2.0
// The gated delta rule: delta_rule (delta_rule.hpp) with a state that decays before each token.
//
//   P_t      = exp(g_t) H_(t-1)
//   H_t      = P_t + beta_t key_t (value_t - P_t^T key_t)^T
//   output_t = softmax_scale H_t^T query_t
//
// g is a log decay in natural units, [batch, seq, heads], a number for a token and head, or, of
// four axes, [batch, seq, heads, key_dim], one for each key dim; in the dtype of query or in f32.
// It counts 0 where it is left out, which is delta_rule. Decays above 0 let the state grow and
// leave an empty one empty, however large; minus infinity starts it anew; plus infinity and NaN
// reach what comes after their token and nothing before it. Everything else is that of delta_rule.
//
// Gradients, with u_t = value_t - P_t^T key_t and D the gradient of the state, from the last token
// back:
//
//   D_t            = softmax_scale query_t grad_output_t^T + exp(g_(t+1)) E_(t+1)
//   c_t            = D_t^T key_t
//   E_t            = D_t - beta_t key_t c_t^T
//   grad_query_t   = softmax_scale H_t grad_output_t
//   grad_key_t     = beta_t (D_t u_t - P_t c_t)
//   grad_value_t   = beta_t c_t
//   grad_beta_t    = u_t^T c_t
//   grad_g_t       = sum of E_t P_t (element by element), or its sums over value dims where g has
//                    key dims
//   grad_initial_state = exp(g_0) E_0
//
// What joins D behind the last token is grad_final_state, or 0.
//
// Source: Yang et al., arXiv:2412.06464.
#pragma once

#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct GatedDeltaRuleOptions {
  Tensor g{};
  Tensor initial_state{};
  Tensor state{};  // changed in place, in place of initial_state and final_state
  Tensor cu_seqlens{};
  bool reverse = false;
  std::optional<float> softmax_scale{};  // default key_dim^-1/2
};

// Which gradients to compute, of the operands that the call has.
struct GatedDeltaRuleGradientOptions {
  Tensor grad_final_state{};  // where final_state was used; f32
  bool query = true, key = true, value = true, beta = true, g = true;
  bool initial_state = true;
};

// Empty where the call has no such operand or it was not wanted.
struct GatedDeltaRuleGradients {
  Tensor query, key, value, beta, g, initial_state;
};

TESSERA_API RecurrentResult gated_delta_rule(const Executor& on, const Tensor& query,
                                             const Tensor& key, const Tensor& value,
                                             const Tensor& beta,
                                             const GatedDeltaRuleOptions& options = {});
TESSERA_API GatedDeltaRuleGradients gated_delta_rule_backward(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& beta, const Tensor& grad_output, const GatedDeltaRuleOptions& options = {},
    const GatedDeltaRuleGradientOptions& wanted = {});

}  // namespace tessera
