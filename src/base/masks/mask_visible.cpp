// SPDX-License-Identifier: Apache-2.0
// What a mask shows, element by element and row by row.
#include <algorithm>
#include <limits>

#include "base/masks/mask_checks.hpp"
#include "base/masks/mask_view.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/tensors/checked.hpp"
#include "tessera/mask.hpp"

namespace tessera {
namespace {

// Offsets may be anything; far outside of the mask they all mean the same.
std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  if (const auto sum = checked_add(a, b)) return *sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

// 1 for the elements of row b before `length` whose segment id is not negative.
void append_valid(std::vector<std::uint8_t>& mask, const std::vector<std::int32_t>* segments,
                  std::int64_t b, std::int64_t len, std::int64_t length) {
  for (std::int64_t n = 0; n < len; ++n) {
    const bool valid =
        n < length && (!segments || (*segments)[static_cast<std::size_t>(b * len + n)] >= 0);
    mask.push_back(valid ? 1 : 0);
  }
}

// Segment ids with padding wherever the mask is 0; all one segment without ids.
std::vector<std::int32_t> masked_ids(const std::vector<std::int32_t>* segments,
                                     const std::vector<std::uint8_t>& mask) {
  std::vector<std::int32_t> ids(mask.size());
  for (std::size_t n = 0; n < ids.size(); ++n) {
    ids[n] = mask[n] == 0 ? -1 : segments ? (*segments)[n] : 0;
  }
  return ids;
}

}  // namespace

std::int64_t MaskSpec::alignment_shift(const Diagonal& diagonal, std::int64_t b) const try {
  return diagonal.alignment == CausalAlignment::kTopLeft ? 0 : kv_length(b) - q_length(b);
} catch (...) {
  rethrow_as_error();
}

std::int64_t MaskSpec::q_length(std::int64_t b) const try {
  check_index("b", b, batch_);
  return q_lengths_ ? (*q_lengths_)[static_cast<std::size_t>(b)] : q_len_;
} catch (...) {
  rethrow_as_error();
}

std::int64_t MaskSpec::kv_length(std::int64_t b) const try {
  check_index("b", b, batch_);
  return kv_lengths_ ? (*kv_lengths_)[static_cast<std::size_t>(b)] : kv_len_;
} catch (...) {
  rethrow_as_error();
}

DiagonalBand MaskSpec::band(std::int64_t b) const try {
  check_index("b", b, batch_);
  // The shift comes last: it is far smaller than 64 bits, so a sum that saturates before it is
  // outside of the mask with or without it.
  const auto edge = [&](const Diagonal& diagonal, std::int64_t reach) {
    return saturating_add(saturating_add(value_of(diagonal.offsets, b), reach),
                          alignment_shift(diagonal, b));
  };
  DiagonalBand band{.low = -q_len_, .high = kv_len_};
  if (causal_) band.high = std::min(band.high, edge(*causal_, 0));
  if (chunks_) band.high = std::min(band.high, edge(chunks_->diagonal, 0));
  if (window_) {
    band.low = std::max(band.low, edge(window_->diagonal, -window_->left));
    band.high = std::min(band.high, edge(window_->diagonal, window_->right));
  }
  // Beyond these, nothing is visible either way.
  return {.low = std::min(band.low, kv_len_), .high = std::max(band.high, -q_len_)};
} catch (...) {
  rethrow_as_error();
}

std::vector<std::uint8_t> MaskSpec::q_mask() const try {
  std::vector<std::uint8_t> mask;
  mask.reserve(static_cast<std::size_t>(mul_or_throw(batch_, q_len_, "a mask")));
  for (std::int64_t b = 0; b < batch_; ++b) {
    append_valid(mask, segments_ ? &segments_->q : nullptr, b, q_len_, q_length(b));
  }
  return mask;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::uint8_t> MaskSpec::kv_mask() const try {
  std::vector<std::uint8_t> mask;
  mask.reserve(static_cast<std::size_t>(mul_or_throw(batch_, kv_len_, "a mask")));
  for (std::int64_t b = 0; b < batch_; ++b) {
    append_valid(mask, segments_ ? &segments_->kv : nullptr, b, kv_len_, kv_length(b));
  }
  return mask;
} catch (...) {
  rethrow_as_error();
}

QueryKeyIds MaskSpec::positions() const try {
  if (positions_) return *positions_;
  if (batch_ == 0) return {};
  return {.q = positions_from_segments(batch_,
                                       masked_ids(segments_ ? &segments_->q : nullptr, q_mask())),
          .kv = positions_from_segments(batch_,
                                        masked_ids(segments_ ? &segments_->kv : nullptr, kv_mask()),
                                        std::numeric_limits<std::int32_t>::max())};
} catch (...) {
  rethrow_as_error();
}

bool MaskSpec::is_self_attention() const try {
  return q_len_ == kv_len_ && (!segments_ || segments_->q == segments_->kv);
} catch (...) {
  rethrow_as_error();
}

bool MaskSpec::visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const try {
  check_index("b", b, batch_);
  if (heads_ > 1) check_index("h", h, heads_);
  check_index("i", i, q_len_);
  check_index("j", j, kv_len_);
  return MaskView(*this, b).visible(h, i, j);
} catch (...) {
  rethrow_as_error();
}

KeyInterval MaskSpec::bounds(std::int64_t b, std::int64_t i) const try {
  check_index("b", b, batch_);
  check_index("i", i, q_len_);
  const MaskView view(*this, b);
  KeyInterval keys = view.keys(i);
  if (view.is_formula()) return keys;
  const std::int64_t heads = dense_ ? dense_->heads : 1;
  const auto hidden = [&](std::int64_t j) {
    for (std::int64_t h = 0; h < heads; ++h) {
      if (view.visible(h, i, j)) return false;
    }
    return true;
  };
  while (keys.first < keys.last && hidden(keys.first)) ++keys.first;
  while (keys.first < keys.last && hidden(keys.last - 1)) --keys.last;
  return keys.first < keys.last ? keys : KeyInterval{};
} catch (...) {
  rethrow_as_error();
}

DenseMask MaskSpec::to_dense() const try {
  DenseMask mask{.batch = batch_, .heads = heads_, .q_len = q_len_, .kv_len = kv_len_};
  const std::int64_t rows =
      mul_or_throw(mul_or_throw(batch_, heads_, "a dense mask"), q_len_, "a dense mask");
  mask.values.reserve(static_cast<std::size_t>(mul_or_throw(rows, kv_len_, "a dense mask")));
  for (std::int64_t b = 0; b < batch_; ++b) {
    const MaskView view(*this, b);
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t i = 0; i < q_len_; ++i) {
        for (std::int64_t j = 0; j < kv_len_; ++j) {
          mask.values.push_back(view.visible(h, i, j) ? 1 : 0);
        }
      }
    }
  }
  return mask;
} catch (...) {
  rethrow_as_error();
}

std::vector<float> MaskSpec::to_bias() const try {
  const DenseMask mask = to_dense();
  std::vector<float> bias(mask.values.size());
  std::ranges::transform(mask.values, bias.begin(), [](std::uint8_t value) {
    return value != 0 ? 0.0F : -std::numeric_limits<float>::infinity();
  });
  return bias;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
