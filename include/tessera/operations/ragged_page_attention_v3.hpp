// SPDX-License-Identifier: Apache-2.0
// Attention of packed queries of many sequences over a cache in pages, into which the call writes
// the keys and values of the queries' tokens first ("v3" of the ragged paged attention of vLLM's
// TPU kernels): one call of a server's step.
//
//   1. row r of sequence n is token t = kv_lens[n] - q_len[n] + r - query_start_loc[n]:
//        kv_cache[block_tables[n, t / page_size], t % page_size, 2 g]     = keys[r, g]
//        kv_cache[block_tables[n, t / page_size], t % page_size, 2 g + 1] = values[r, g]
//      A cache of codes gets round(key / scale). A kv_scale with a scale for each token and head is
//      made and written, any other is read, one for each token that its keys and values share, too.
//      Everything else keeps its bits.
//      or, with value_cache, from and to caches of their own:
//        kv_cache[..., g] = keys[r, g], value_cache[..., g] = values[r, g]
//   2. ragged_page_attention over the cache as it is then, or over both.
//
// q_scale, k_scale and v_scale are what numbers of the queries, keys and values stand for; 1 where
// they are not given:
//   logits are softmax_scale * q_scale * k_scale * (q' . k), and outputs v_scale * sum_t w_t v_t
//   q' is queries / q_scale in the cache's type, where q_scale is given, else queries: floats are
//   rounded once, codes to the nearest, of ties the even one; the largest is the most
// In a cache of floats, k and v are what it holds, and new ones are written as they are. In a cache
// of codes, k_scale and v_scale are in place of kv_scale: new ones become round(key / k_scale) and
// round(value / v_scale). With v_scale, 16-bit outputs over a cache of floats are rounded once more
// than without.
//
// distribution = {i, j, k}: sequences [0, i) have one row, [i, j) are prefilled, [j, k) either, and
// k is their number. Work is shared by the rows that there are, so i and j change no result; they
// are checked.
//
// Tables, lengths and starts lie on the device. What is wrong with them harms nothing: a new token
// without a page is not written, and what is read is as in ragged_page_attention. Who waits for the
// call gets a DataError that says where. A count that is wrong is told of the last of distribution.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/precision.hpp"

namespace tessera {

struct RaggedPageAttentionV3Options {
  std::optional<float> softmax_scale{};          // default head_dim^-1/2
  std::optional<float> logits_soft_cap{};        // > 0
  std::optional<std::int64_t> sliding_window{};  // >= 1, tokens
  Tensor softmax_aux{};                          // [sinks], or [heads, sinks], or [kv_heads, sinks]
  Tensor kv_scale{};  // of codes: f32 [pages, page_size, 2 kv_heads], axes may be 1
  std::optional<float> q_scale{}, k_scale{}, v_scale{};  // > 0
  std::int64_t num_splits = 0;           // work-groups that share a row's tokens; 0 = chosen
  std::optional<Precision> precision{};  // see Numerics in flash_attention.hpp
  Tensor value_cache{};  // [pages, page_size, kv_heads, value_dim]: kv_cache holds keys alone
  Tensor value_scale{};  // of codes there: f32 [pages, page_size, kv_heads], as kv_scale then
};

// queries [rows, heads, head_dim]; keys and values [rows, kv_heads, head_dim] of the same dtype;
// kv_cache [pages, page_size, 2 kv_heads, head_dim] of that dtype or i8, i4, e4m3fn, e5m2, or with
// its heads on two axes and more of them and of features than there are: [pages, page_size, x, y,
// dim]; or [pages, page_size, kv_heads, head_dim] beside options.value_cache of the same dtype, and
// then values are [rows, kv_heads, value_dim]. kv_lens i32 [sequences], block_tables i32
// [sequences, max_blocks] or as many in one line, query_start_loc i32 [sequences + 1], distribution
// i32 [3]. Changes kv_cache and value_cache, and returns [rows, heads, value_dim]. Throws
// InvalidArgument where shapes, dtypes or options do not fit.
TESSERA_API Tensor ragged_page_attention_v3(const Executor& on, const Tensor& queries,
                                            const Tensor& keys, const Tensor& values,
                                            const Tensor& kv_cache, const Tensor& kv_lens,
                                            const Tensor& block_tables,
                                            const Tensor& query_start_loc,
                                            const Tensor& distribution,
                                            const RaggedPageAttentionV3Options& options = {});

}  // namespace tessera
