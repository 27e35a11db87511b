// SPDX-License-Identifier: Apache-2.0
// Exact softmax attention in tiles, with memory that grows with the sequence and not with its
// square (FlashAttention-2, arXiv:2307.08691).
//
//   s[i,j] = softmax_scale * sum_d query[i,d] * key[j,d]
//   s[i,j] = cap * tanh(s[i,j] / cap)                            if logits_soft_cap
//   p[i,:] = softmax over the visible j of s[i,:]
//   output[i,:]      = sum_j p[i,j] * value[j,:]
//   log_sum_exp[i]   = ln sum over the visible j of exp(s[i,j])
//
// Row i sees row j when j < kv_len and
//   causal:          j <= i + shift
//   sliding_window:  i + shift - left <= j <= i + shift + right
// with shift = 0 for top-left alignment and kv_len - q_len for bottom-right. A row that sees
// nothing gets output 0 and log_sum_exp -inf.
//
// Numerics: storage f32, f16 or bf16; scores, softmax and accumulation in float; one rounding to
// nearest even at the end. The same library, driver, device, configuration and inputs give the same
// bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Where the diagonal of a causal mask or window starts when q_len != kv_len.
enum class CausalAlignment : std::uint8_t { kTopLeft, kBottomRight };

struct FlashAttentionOptions {
  std::optional<float> softmax_scale{};  // default head_dim^-1/2
  bool causal = false;
  CausalAlignment causal_alignment = CausalAlignment::kTopLeft;
  std::optional<std::array<std::int64_t, 2>>
      sliding_window{};                    // {left, right}, inclusive, not negative
  std::optional<float> logits_soft_cap{};  // > 0
};

// query [batch, q_len, heads, head_dim]; key [batch, kv_len, kv_heads, head_dim]; value [batch,
// kv_len, kv_heads, value_dim]; heads is a multiple of kv_heads, and query head h reads key/value
// head h / (heads / kv_heads). head_dim and value_dim are 1 to 512. Batch, sequence and head axes
// may have any strides, so a [batch, heads, seq, dim] tensor is passed as tensor.permute({0, 2, 1,
// 3}); the feature axis must be contiguous. Returns output [batch, q_len, heads, value_dim] in the
// dtype of query. Throws InvalidArgument for shapes and values that contradict this, Unsupported
// where no variant of the device can.
TESSERA_API Tensor flash_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                   const Tensor& value, const FlashAttentionOptions& options = {});

struct FlashAttentionForward {
  Tensor output;
  Tensor log_sum_exp;  // f32 [batch, heads, q_len], natural logarithm
};
TESSERA_API FlashAttentionForward
flash_attention_forward(const Executor& on, const Tensor& query, const Tensor& key,
                        const Tensor& value, const FlashAttentionOptions& options = {});

}  // namespace tessera
