// SPDX-License-Identifier: Apache-2.0
// The delta rule: linear attention whose keys replace what the state holds for them, where
// recurrent (recurrent.hpp) adds to it. The state is key_dim x value_dim for each head.
//
//   H_t      = H_(t-1) + beta_t key_t (value_t - H_(t-1)^T key_t)^T
//   output_t = softmax_scale H_t^T query_t
//
// beta is how much of it a token replaces, [batch, seq, heads], usually a sigmoid, in the dtype of
// query or in f32: with beta 1 and a key of norm 1, the state gives value_t for key_t afterwards.
// Keys are taken as given. A token multiplies the state by I - beta_t key_t key_t^T, so it grows
// without bound where beta_t |key_t|^2 stays above 2; models normalise keys and queries beforehand.
//
// Shapes of the other operands, dtypes, states, reverse, packed sequences and errors are those of
// recurrent: final_state is the state after the last token, and with reverse, time runs from the
// last token of each sequence to its first.
//
// Gradients, with u_t = value_t - H_(t-1)^T key_t and D the gradient of the state, from the last
// token back:
//
//   D_t            = softmax_scale query_t grad_output_t^T + E_(t+1)
//   c_t            = D_t^T key_t
//   E_t            = D_t - beta_t key_t c_t^T
//   grad_query_t   = softmax_scale H_t grad_output_t
//   grad_key_t     = beta_t (D_t u_t - H_(t-1) c_t)
//   grad_value_t   = beta_t c_t
//   grad_beta_t    = u_t^T c_t
//   grad_initial_state = E_0
//
// E behind the last token is grad_final_state, or 0. Gradients have the shapes and dtypes of what
// they are of; those of tokens of no sequence are 0.
//
// Numerics: states and sums in float, one rounding to nearest even at the end. Of f16 and bf16 the
// variant mma takes 64 tokens at once, whose equations for what each adds to the state it solves in
// floats, but for precision = Precision::kHighest. Factors of what stays in the state are kept to
// 2^-16 there, as sums of two numbers of 16 bits; for outputs the state that a query meets,
// products of queries and keys, and what tokens add are rounded to the dtype of query. So are, for
// gradients, products of queries and keys that meet those of outputs, and for all but those of
// values and of the first state what chunks begin with, their tokens' u and c, and products of
// those. Chunks with decays above 0, or with what is not finite or too large for the dtype, are
// taken token by token, and their gradients pair by pair, in float. Sums have one order: the same
// library, driver, device, configuration and inputs give the same bits.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can, DataError as recurrent has it.
//
// Source: Schlag et al., arXiv:2102.11174; Yang et al., arXiv:2406.06484.
#pragma once

#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct DeltaRuleOptions {
  Tensor initial_state{};
  Tensor state{};  // changed in place, in place of initial_state and final_state
  Tensor cu_seqlens{};
  bool reverse = false;
  std::optional<float> softmax_scale{};  // default key_dim^-1/2
};

// Which gradients to compute, of the operands that the call has.
struct DeltaRuleGradientOptions {
  Tensor grad_final_state{};  // where final_state was used; f32
  bool query = true, key = true, value = true, beta = true;
  bool initial_state = true;
};

// Empty where the call has no such operand or it was not wanted.
struct DeltaRuleGradients {
  Tensor query, key, value, beta, initial_state;
};

TESSERA_API RecurrentResult delta_rule(const Executor& on, const Tensor& query, const Tensor& key,
                                       const Tensor& value, const Tensor& beta,
                                       const DeltaRuleOptions& options = {});
TESSERA_API DeltaRuleGradients delta_rule_backward(const Executor& on, const Tensor& query,
                                                   const Tensor& key, const Tensor& value,
                                                   const Tensor& beta, const Tensor& grad_output,
                                                   const DeltaRuleOptions& options = {},
                                                   const DeltaRuleGradientOptions& wanted = {});

}  // namespace tessera
