// SPDX-License-Identifier: Apache-2.0
// Attention of packed queries of many sequences over a cache in pages: prefill, chunks of it and
// decoding in one call ("v2" of the ragged paged attention of vLLM's TPU kernels). The tokens of
// the queries are in the pages already.
//
//   sequence n has the query rows [query_start_loc[n], query_start_loc[n + 1]), n < num_seqs; row i
//   of q_len is token p = context_lens[n] - q_len + i
//   s[t] = cap(softmax_scale * queries[row,h,:] . key[t,g,:])    t <= p, g = h / (heads / kv_heads)
//   output[row,h,:] = sum_t softmax_t(s) * value[t,g,:]
//   key[t,g,:]   = kv_pages[block_tables[n, t / page_size], t % page_size, 2 g, :]
//   value[t,g,:] = kv_pages[block_tables[n, t / page_size], t % page_size, 2 g + 1, :]
//
// or, with value_pages, from pools of their own:
//
//   key[t,g,:]   = kv_pages[block_tables[n, t / page_size], t % page_size, g, :]
//   value[t,g,:] = value_pages[block_tables[n, t / page_size], t % page_size, g, :]
//
// cap(x) = c * tanh(x / c) with logits_soft_cap c. A sliding_window of w hides tokens up to p - w.
// softmax_aux holds logits of tokens whose value is 0. Rows of no sequence, and rows without
// tokens, are 0.
//
// Tables, lengths and starts lie on the device, so what is wrong with them is found there, and
// nothing outside of the operands is read: a page that is none of the pool hides its tokens,
// lengths, starts and num_seqs count as the nearest that are possible, and rows beyond the tokens
// of their sequence are 0. Who waits for the call gets a DataError that says where. What stands
// behind the last token of a sequence, and behind the last sequence, is not looked at.
//
// Caches of codes (i8, i4, e4m3fn, e5m2; as quantise_cache makes them) have kv_scale: a
// code times its scale is the number that is meant. Its axes are those of the cache but the last,
// each of them or 1. Scales are not negative. Values apart from keys have value_scale.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/precision.hpp"

namespace tessera {

struct RaggedPageAttentionOptions {
  std::optional<float> softmax_scale{};          // default head_dim^-1/2
  std::optional<float> logits_soft_cap{};        // > 0
  std::optional<std::int64_t> sliding_window{};  // >= 1, tokens
  Tensor softmax_aux{};                          // [sinks], or [heads, sinks], or [kv_heads, sinks]
  std::int64_t num_splits = 0;           // work-groups that share a row's tokens; 0 = chosen
  std::optional<Precision> precision{};  // see Numerics in flash_attention.hpp
  Tensor kv_scale{};     // of codes: f32 [pages, page_size, 2 kv_heads], axes may be 1
  Tensor value_pages{};  // [pages, page_size, kv_heads, value_dim]: kv_pages holds keys alone
  Tensor value_scale{};  // of codes there: f32 [pages, page_size, kv_heads], axes may be 1
  // i32 [3]: ends of the sequences that decode, that are prefilled, and of all. Changes no result;
  // a DataError says where it contradicts the other tables.
  Tensor distribution{};
};

// queries [rows, heads, head_dim]; kv_pages [pages, page_size, 2 kv_heads, head_dim] of the same
// dtype or codes, whose heads are those of keys and values by turns, or [pages, page_size,
// kv_heads, head_dim] beside options.value_pages of the same dtype; context_lens i32 [sequences],
// block_tables i32 [sequences, max_blocks], query_start_loc i32 [sequences + 1], num_seqs i32 [1].
// Returns [rows, heads, value_dim]. heads is a multiple of kv_heads; head_dim is 1 to 512 and
// contiguous, other strides are free. Throws InvalidArgument where shapes, dtypes or options do not
// fit.
TESSERA_API Tensor ragged_page_attention(const Executor& on, const Tensor& queries,
                                         const Tensor& kv_pages, const Tensor& context_lens,
                                         const Tensor& block_tables, const Tensor& query_start_loc,
                                         const Tensor& num_seqs,
                                         const RaggedPageAttentionOptions& options = {});

struct RaggedPageAttentionForward {
  Tensor output;
  Tensor log_sum_exp;  // f32 [heads, rows], natural logarithm
};
TESSERA_API RaggedPageAttentionForward ragged_page_attention_forward(
    const Executor& on, const Tensor& queries, const Tensor& kv_pages, const Tensor& context_lens,
    const Tensor& block_tables, const Tensor& query_start_loc, const Tensor& num_seqs,
    const RaggedPageAttentionOptions& options = {});

}  // namespace tessera
