// SPDX-License-Identifier: Apache-2.0
// Lightning attention: recurrent (recurrent.hpp) with a fixed decay for each head and layer.
//
//   H_t      = exp(-(8 / heads) (1 - layer_idx / num_layers) h) H_(t-1) + key_t value_t^T
//   output_t = softmax_scale H_t^T query_t
//
// h counts heads from 0: the first never decays. Shapes, packed sequences, gradients, numerics and
// errors are those of recurrent.
//
// Source: Qin et al., arXiv:2401.04658.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {

struct LightningAttentionOptions {
  std::int64_t layer_idx = 0, num_layers = 1;  // 0 <= layer_idx < num_layers
  Tensor initial_state{};
  Tensor state{};  // changed in place, in place of initial_state and final_state
  Tensor cu_seqlens{};
  bool reverse = false;
  std::optional<float> softmax_scale{};  // default key_dim^-1/2
};

TESSERA_API RecurrentResult lightning_attention(const Executor& on, const Tensor& query,
                                                const Tensor& key, const Tensor& value,
                                                const LightningAttentionOptions& options);
// Decays are no operands, and have no gradients.
TESSERA_API RecurrentGradients lightning_attention_backward(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& grad_output, const LightningAttentionOptions& options,
    const RecurrentGradientOptions& wanted = {});

}  // namespace tessera
