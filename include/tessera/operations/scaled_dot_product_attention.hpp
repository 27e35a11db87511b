// SPDX-License-Identifier: Apache-2.0
// Softmax attention of padded batches: the call of deep-learning frameworks, on the kernels of
// flash_attention.
//
//   s[i,j] = softmax_scale * sum_d query[i,d] * key[j,d] + bias[i,j]
//   output[i,:] = sum_j softmax_j(s[i,:]) * value[j,:] over the j that row i sees
//
// Row i sees key j when i < q_lengths[b], j < kv_lengths[b], attention_mask[i,j] is not 0, j <= i
// if causal, and i - left <= j <= i + right if sliding_window. Rows that see nothing are 0.
// Gradients: flash_attention_backward() with the same options.
#pragma once

#include "tessera/operations/flash_attention.hpp"

namespace tessera {

struct ScaledDotProductAttentionOptions {
  std::optional<float> softmax_scale{};  // default head_dim^-1/2
  bool causal = false;
  std::optional<std::array<std::int64_t, 2>> sliding_window{};  // {left, right}, inclusive
  Tensor attention_mask{};  // u8, 0 = hidden; axes as in flash_attention
  Tensor bias{};
  Tensor q_lengths{};                    // i32 [batch]
  Tensor kv_lengths{};                   // i32 [batch]
  std::optional<Precision> precision{};  // see Numerics in flash_attention.hpp
};

// query [batch, q_len, heads, head_dim]; key [batch, kv_len, kv_heads, head_dim]; value [batch,
// kv_len, kv_heads, value_dim]. Shapes, strides, numerics and errors are those of flash_attention.
TESSERA_API Tensor scaled_dot_product_attention(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const ScaledDotProductAttentionOptions& options = {});

}  // namespace tessera
