// SPDX-License-Identifier: Apache-2.0
// Attention of one query per sequence over a dense cache, of which each sequence has the rows from
// sequence_start to sequence_end, as JetStream's ragged decoding kernels have it.
//
//   s[j] = cap(softmax_scale * query[b,h,:] . key[b,j,g,:])      g = h / (heads / kv_heads)
//   output[b,h,:] = sum_j softmax_j(s) * value[b,j,g,:]   over sequence_start[b] <= j <
//   sequence_end[b]
//
// cap(x) = c * tanh(x / c) with logits_soft_cap c. The query is the last row: a sliding_window
// {left, right} hides j < sequence_end - 1 - left, and right hides nothing. softmax_aux holds
// logits of keys whose value is 0. A sequence without keys gives 0. position_bias[h,j] is added to
// the capped logits of the first key rows, counted from that of row 0 and not from sequence_start;
// rows that it does not reach have 0, and it reveals no key (that is what ejkernel's XLA backend
// makes of softmax_aux, but for the keys that it reveals).
//
// Starts and ends lie on the device: those that are not 0 <= start <= end <= rows count as the
// nearest that are, nothing outside of the operands is read, and who waits for the call gets a
// DataError that says where.
//
// Caches of codes (i8, i4, e4m3fn, e5m2; as quantise_cache makes them) have key_scale and
// value_scale: a
// code times its scale is the number that is meant. Its axes are those of the cache but the last,
// each of them or 1. Scales are not negative.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/precision.hpp"

namespace tessera {

struct RaggedDecodeAttentionOptions {
  std::optional<float> softmax_scale{};                         // default head_dim^-1/2
  std::optional<std::array<std::int64_t, 2>> sliding_window{};  // {left, right}
  std::optional<float> logits_soft_cap{};                       // > 0
  Tensor softmax_aux{};                  // [sinks], or [kv_heads, sinks], or [heads, sinks]
  std::int64_t num_splits = 0;           // work-groups that share a sequence's keys; 0 = chosen
  std::optional<Precision> precision{};  // see Numerics in flash_attention.hpp
  Tensor key_scale{}, value_scale{};     // of codes: f32 [batch, rows, kv_heads], axes may be 1
  Tensor position_bias{};  // [positions], or [kv_heads, positions], or [heads, positions]
};

// query [batch, heads, head_dim] or [batch, 1, heads, head_dim]; key [batch, rows, kv_heads,
// head_dim], value [batch, rows, kv_heads, value_dim] of the same dtype or codes; sequence_start
// and sequence_end i32 [batch]. Returns the query's shape, with value_dim. heads is a multiple of
// kv_heads; head_dim and value_dim are 1 to 512 and contiguous, other strides are free. Throws
// InvalidArgument where shapes, dtypes or options do not fit.
TESSERA_API Tensor ragged_decode_attention(const Executor& on, const Tensor& query,
                                           const Tensor& key, const Tensor& value,
                                           const Tensor& sequence_start, const Tensor& sequence_end,
                                           const RaggedDecodeAttentionOptions& options = {});

struct RaggedDecodeAttentionForward {
  Tensor output;
  Tensor log_sum_exp;  // f32 [batch, heads], of queries with an axis of rows [batch, heads, 1]
};
TESSERA_API RaggedDecodeAttentionForward ragged_decode_attention_forward(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& sequence_start, const Tensor& sequence_end,
    const RaggedDecodeAttentionOptions& options = {});

}  // namespace tessera
