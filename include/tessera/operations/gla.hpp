// SPDX-License-Identifier: Apache-2.0
// Gated linear attention: recurrent (recurrent.hpp) with a decay for each key dim, of each token.
//
//   H_t[k,v]    = exp(g_t[k] + g_gamma_h) H_(t-1)[k,v] + key_t[k] value_t[v]
//   output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]
//
// g is a log decay in natural units, [batch, seq, heads, key_dim], usually a log-sigmoid; of three
// axes, it is one number for all key dims of a token. Shapes, packed sequences, gradients, numerics
// and errors are those of recurrent.
//
// Source: Yang et al., arXiv:2312.06635.
#pragma once

#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct GlaOptions {
  Tensor g{}, g_gamma{};
  Tensor initial_state{};
  Tensor state{};  // changed in place, in place of initial_state and final_state
  Tensor cu_seqlens{};
  bool reverse = false;
  std::optional<float> softmax_scale{};  // default key_dim^-1/2
};

TESSERA_API RecurrentResult gla(const Executor& on, const Tensor& query, const Tensor& key,
                                const Tensor& value, const GlaOptions& options = {});
// Of the decays, g and g_gamma have gradients.
TESSERA_API RecurrentGradients gla_backward(const Executor& on, const Tensor& query,
                                            const Tensor& key, const Tensor& value,
                                            const Tensor& grad_output,
                                            const GlaOptions& options = {},
                                            const RecurrentGradientOptions& wanted = {});

}  // namespace tessera
