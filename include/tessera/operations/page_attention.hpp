// SPDX-License-Identifier: Apache-2.0
// Attention of one query per sequence over a cache in pages (PagedAttention, Kwon et al., 2023,
// arXiv:2309.06180): the decoding step of a server.
//
//   token t of sequence n: page = block_tables[n, t / page_size], slot = t % page_size
//   s[t] = cap(attn_scale * query[n,h,:] . key_cache[page,g,slot,:])     g = h / (heads / kv_heads)
//   output[n,h,:] = sum_t softmax_t(s) * value_cache[page,g,slot,:]      t < context_lens[n]
//
// cap(x) = c * tanh(x / c) with attn_logits_soft_cap c. A sliding_window of w hides all but the
// last w tokens. softmax_aux holds logits of tokens whose value is 0. A sequence without tokens
// gives 0.
//
// Tables and lengths lie on the device, so what is wrong with them is found there, and nothing
// outside of the operands is read: a page that is none of the pool hides its tokens, and a length
// counts as the nearest that block_tables has room for. Who waits for the call gets a DataError
// that says where. What stands in block_tables behind the last token is not looked at.
//
// Caches of codes (i8, i4, e4m3fn, e5m2; as quantise_cache makes them) have key_scale and
// value_scale: a
// code times its scale is the number that is meant. Its axes are those of the cache but the last,
// each of them or 1. Scales are not negative.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/precision.hpp"

namespace tessera {

struct PageAttentionOptions {
  std::optional<float> attn_scale{};             // default head_dim^-1/2
  std::optional<float> attn_logits_soft_cap{};   // > 0
  std::optional<std::int64_t> sliding_window{};  // >= 1, tokens
  Tensor softmax_aux{};                          // [sinks], or [heads, sinks], or [kv_heads, sinks]
  std::int64_t num_splits = 0;  // work-groups that share a sequence's tokens; 0 = chosen
  std::optional<std::int64_t> max_context_len{};  // of the longest sequence, to choose them by
  std::optional<Precision> precision{};           // see Numerics in flash_attention.hpp
  Tensor key_scale{}, value_scale{};  // of codes: f32 [pages, kv_heads, page_size], axes may be 1
};

// query [sequences, heads, head_dim]; key_cache [pages, kv_heads, page_size, head_dim]; value_cache
// [pages, kv_heads, page_size, value_dim], of the query's dtype or codes. context_lens i32
// [sequences], block_tables i32 [sequences, max_blocks]. Returns [sequences, heads, value_dim].
// heads is a multiple of kv_heads; head_dim and value_dim are 1 to 512 and contiguous, other
// strides are free: a cache [kv_heads, pages, page_size, head_dim] is one with its first two axes
// swapped. Throws InvalidArgument where shapes, dtypes or options do not fit.
TESSERA_API Tensor page_attention(const Executor& on, const Tensor& query, const Tensor& key_cache,
                                  const Tensor& value_cache, const Tensor& context_lens,
                                  const Tensor& block_tables,
                                  const PageAttentionOptions& options = {});

struct PageAttentionForward {
  Tensor output;
  Tensor log_sum_exp;  // f32 [sequences, heads], natural logarithm
};
TESSERA_API PageAttentionForward page_attention_forward(const Executor& on, const Tensor& query,
                                                        const Tensor& key_cache,
                                                        const Tensor& value_cache,
                                                        const Tensor& context_lens,
                                                        const Tensor& block_tables,
                                                        const PageAttentionOptions& options = {});

}  // namespace tessera
