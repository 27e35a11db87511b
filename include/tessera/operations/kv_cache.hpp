// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values in pages, as servers of language models keep them: appending, copying
// pages, and codes of 8 and 4 bits.
//
// A pool is [pages, heads, page_size, dim] with any strides but along the last axis, which is
// contiguous: [heads, pages, page_size, dim] in memory is a permuted view, and of combined keys and
// values [pages, page_size, 2 heads, dim] each half is a strided one, for a call of its own. Slot s
// of a pool is place s % page_size of page s / page_size.
//
// append_to_cache writes row keys[t, h] into head h of the slot of token t, and values alike. The
// slots are those of slot_mapping, or follow from tables: sequence n has the tokens
// query_start_loc[n] <= t < query_start_loc[n + 1]; token t is its position
// kv_lens[n] - query_start_loc[n + 1] + t, in page block_tables[n, position / page_size]. A slot of
// -1 skips its token; of tokens with one slot the last one wins; every other slot keeps its bits.
//
// Its gradients, for caches of floats: with g that of the cache after the call, the gradient of
// keys[t, h] is g at head h of the slot that token t was written to, and 0 of tokens that were not
// written or not last; the gradient of the cache before the call is g with zeros in those slots. g
// is changed in place from one to the other, as the cache was, so the pullbacks of several calls
// that append to one cache are applied in reverse order to one g. Codes are rounded and have no
// gradient. Nor has copy_pages: a server's copies belong to no computation, and the gradient of a
// page with several copies would be a sum over them.
//
// copy_pages copies page source_pages[i] to page target_pages[i], as if all were read before any is
// written: pairs may form chains and circles. -1 on either side skips the pair; of equal targets
// the last wins. Pages that another pair of the same pool overwrites go through scratch: a call
// within one pool takes pairs times the bytes of a page of it. Copies on write, defragmentation,
// and swapping: a few pages to a pool of their own, which is downloaded.
//
// quantise_cache and dequantise_cache, with m the largest code (127, 7, 448, 57344 of i8, i4,
// e4m3fn and e5m2):
//
//   scale = largest |x| of what shares the scale / m; 1 where that is below 2^-126
//   code  = x / scale, as floats, rounded to nearest even, at most m in magnitude
//   x'    = code * scale
//
// NaN is no largest magnitude; its code is NaN in 8-bit floats and 0 in integers. Scales are f32 in
// the shape [pages, heads, page_size], with axes of 1 where they are shared. append_to_cache into a
// pool of codes takes scales, too: with one for each token and head it makes and writes them,
// others are given and read; so are all with the option read_scales, which Executor::run takes.
//
// Tables are data that only the device sees, and may hold anything where no token lies. What is
// wrong elsewhere is reported by DataError and has the nearest defined result: slots and pages
// outside of the pool are not written; lengths are cut to [0, pages_per_seq page_size], offsets to
// [0, tokens] and to not decrease, the number of sequences to those of the tables; tokens in front
// of position 0 are skipped.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can; DataError as above.
//
// Sources: Kwon et al., arXiv:2309.06180 (pages); formats of the Open Compute Project, OFP8.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// The caches that a call writes. Tensors that are left out are not part of the call.
struct PagedCache {
  Tensor keys{};         // [pages, heads, page_size, dim]: the dtype of the new keys, or codes
  Tensor values{};       // [pages, heads, page_size, value_dim]
  Tensor key_scale{};    // f32, of codes
  Tensor value_scale{};  // f32, of codes
};

// Where the tokens of a call lie, i32: slot_mapping, or the tables.
struct CacheSlots {
  Tensor slot_mapping{};     // [tokens]
  Tensor block_tables{};     // [max_seqs, pages_per_seq]
  Tensor kv_lens{};          // [max_seqs], new tokens included
  Tensor query_start_loc{};  // [max_seqs + 1]
  Tensor num_seqs{};         // [1]
};

TESSERA_API void append_to_cache(const Executor& on, const Tensor& keys, const Tensor& values,
                                 const PagedCache& cache, const CacheSlots& slots);

// Gradients of new keys and values, f32, f16 or bf16 as the cache's gradient.
struct CacheGradients {
  Tensor keys{}, values{};  // [tokens, heads, dim]
};

// `grad_cache`: of the caches after append_to_cache(), without scales; becomes those before it.
// `tokens` of the call: needed where tables and no slot_mapping say the slots. DataError and what
// is skipped as there.
TESSERA_API CacheGradients append_to_cache_backward(const Executor& on,
                                                    const PagedCache& grad_cache,
                                                    const CacheSlots& slots,
                                                    std::optional<std::int64_t> tokens = {});

// `source`: another pool; empty = the pages are those of `pool`.
TESSERA_API void copy_pages(const Executor& on, const Tensor& source_pages,
                            const Tensor& target_pages, const Tensor& pool,
                            const Tensor& source = {});

enum class CacheScale { kTokenHead, kPage, kHead, kTensor };

struct QuantisedCache {
  Tensor codes, scale;
};

TESSERA_API QuantisedCache quantise_cache(const Executor& on, const Tensor& input,
                                          DType codes = DType::kI8,
                                          CacheScale scale_of = CacheScale::kTokenHead);
TESSERA_API Tensor dequantise_cache(const Executor& on, const Tensor& codes, const Tensor& scale,
                                    DType output = DType::kF32);

namespace vjp {

// Takes the gradients of the caches after the call, which become those of the caches before it, to
// those of the new keys and values. Keep the slots' tensors as they were.
class CachePullback {
 public:
  TESSERA_API CacheGradients operator()(const PagedCache& grad_cache) const;

 private:
  struct State;
  explicit CachePullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct CacheMaker;
  std::shared_ptr<const State> state_;
};

// CachePullback pullback = vjp::append_to_cache(context, k, v, cache, {.slot_mapping = slots});
TESSERA_API CachePullback append_to_cache(const Executor& on, const Tensor& keys,
                                          const Tensor& values, const PagedCache& cache,
                                          const CacheSlots& slots);

}  // namespace vjp
}  // namespace tessera
