// SPDX-License-Identifier: Apache-2.0
// The attention family: flash_attention, scaled_dot_product_attention, and attention, which also
// returns its weights and so takes memory that grows with the square of the sequence.
//
//   s[i,j] = cap(softmax_scale * sum_d query[i,d] * key[j,d]) + bias[i,j]
//   weights[i,j] = keep[i,j] * exp(s[i,j]) / (sum over the visible j of exp(s[i,j]) + sum of
//                  exp(sink))
//   output[i,:]  = sum_j weights[i,j] * value[j,:]
//
// cap(x) = cap * tanh(x / cap) with logits_soft_cap, else x. The bias joins after the cap, unlike
// that of flash_attention. Masks, windows (top-left), sinks and dropout are as there.
#pragma once

#include "tessera/operations/flash_attention.hpp"
#include "tessera/operations/scaled_dot_product_attention.hpp"

namespace tessera {

struct AttentionOptions {
  std::optional<float> softmax_scale{};  // default head_dim^-1/2
  bool causal = false;
  std::optional<std::array<std::int64_t, 2>> sliding_window{};  // {left, right}, inclusive
  std::optional<float> logits_soft_cap{};                       // > 0
  Tensor attention_mask{};  // u8, 0 = hidden; axes as in flash_attention
  Tensor bias{};
  Tensor softmax_aux{};           // sinks: [sinks], [kv_heads, sinks] or [heads, sinks]
  float dropout_prob = 0;         // in [0, 1)
  std::int64_t dropout_seed = 0;  // its 64 bits: -1 is the seed 2^64 - 1
};

struct AttentionResult {
  Tensor output;   // [batch, q_len, heads, value_dim]
  Tensor weights;  // [batch, heads, q_len, kv_len], in the dtype of query
  // f32 [batch, heads, q_len]: of the scores that the row sees and the sinks, natural logarithm;
  // -inf where there are none
  Tensor log_sum_exp;
};

// query [batch, q_len, heads, head_dim]; key [batch, kv_len, kv_heads, head_dim]; value [batch,
// kv_len, kv_heads, value_dim]. Shapes, strides, numerics and errors are those of flash_attention.
TESSERA_API AttentionResult attention(const Executor& on, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const AttentionOptions& options = {});

}  // namespace tessera
