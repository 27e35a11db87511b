// SPDX-License-Identifier: Apache-2.0
// A symbolic mask as options of flash_attention.
#include <algorithm>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/flash_attention.hpp"

namespace tessera {
namespace {

// The kernels count every diagonal from one alignment and know no offsets.
bool is_plain(const Diagonal& diagonal) {
  return std::ranges::all_of(diagonal.offsets, [](std::int64_t offset) { return offset == 0; });
}

std::vector<Diagonal> diagonals_of(const MaskSpec& mask) {
  std::vector<Diagonal> diagonals;
  if (mask.causal()) diagonals.push_back(*mask.causal());
  if (mask.window()) diagonals.push_back(mask.window()->diagonal);
  if (mask.chunks()) diagonals.push_back(mask.chunks()->diagonal);
  return diagonals;
}

bool is_symbolic(const MaskSpec& mask) {
  const std::vector<Diagonal> diagonals = diagonals_of(mask);
  const auto like_the_first = [&](const Diagonal& diagonal) {
    return is_plain(diagonal) && diagonal.alignment == diagonals.front().alignment;
  };
  if (mask.token_types() || !std::ranges::all_of(diagonals, like_the_first)) return false;
  if (!mask.chunks()) return true;
  // A chunk counts from row and key 0, and from the diagonal of top-left alignment.
  const auto is_zero = [](std::int64_t start) { return start == 0; };
  return mask.chunks()->diagonal.alignment == CausalAlignment::kTopLeft &&
         std::ranges::all_of(mask.chunks()->q_starts, is_zero) &&
         std::ranges::all_of(mask.chunks()->kv_starts, is_zero);
}

Tensor upload_dense(const Context& context, const DenseMask& dense) {
  return context.upload(dense.values, {dense.batch, dense.heads, dense.q_len, dense.kv_len});
}

Tensor upload_lengths(const Context& context, const MaskSpec& mask,
                      std::int64_t (MaskSpec::*length)(std::int64_t) const) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < mask.batch(); ++b)
    lengths.push_back(static_cast<std::int32_t>((mask.*length)(b)));
  return context.upload(lengths, {mask.batch()});
}

bool any_shorter(const MaskSpec& mask, std::int64_t (MaskSpec::*length)(std::int64_t) const,
                 std::int64_t whole) {
  for (std::int64_t b = 0; b < mask.batch(); ++b) {
    if ((mask.*length)(b) != whole) return true;
  }
  return false;
}

}  // namespace

FlashAttentionOptions with_mask(const Context& context, const MaskSpec& mask,
                                FlashAttentionOptions options) try {
  if (!is_symbolic(mask)) {
    options.attention_mask = upload_dense(context, mask.to_dense());
    return options;
  }
  const std::vector<Diagonal> diagonals = diagonals_of(mask);
  if (!diagonals.empty()) options.causal_alignment = diagonals.front().alignment;
  if (mask.causal()) options.causal = true;
  if (mask.window())
    options.sliding_window = std::array<std::int64_t, 2>{mask.window()->left, mask.window()->right};
  if (mask.chunks()) options.chunk_size = mask.chunks()->size;
  if (mask.segments()) {
    options.q_segment_ids = context.upload(mask.segments()->q, {mask.batch(), mask.q_len()});
    options.kv_segment_ids = context.upload(mask.segments()->kv, {mask.batch(), mask.kv_len()});
  }
  if (any_shorter(mask, &MaskSpec::q_length, mask.q_len()))
    options.q_lengths = upload_lengths(context, mask, &MaskSpec::q_length);
  if (any_shorter(mask, &MaskSpec::kv_length, mask.kv_len()))
    options.kv_lengths = upload_lengths(context, mask, &MaskSpec::kv_length);
  if (mask.dense() != nullptr) options.attention_mask = upload_dense(context, *mask.dense());
  return options;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
