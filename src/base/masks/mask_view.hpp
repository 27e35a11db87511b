// SPDX-License-Identifier: Apache-2.0
// One batch of a MaskSpec with its rules resolved: what visible(), bounds() and the block layout
// evaluate.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/mask.hpp"

namespace tessera {

// Rows [q_first, q_last) and keys [kv_first, kv_last).
struct MaskRectangle {
  std::int64_t q_first;
  std::int64_t q_last;
  std::int64_t kv_first;
  std::int64_t kv_last;
  bool empty() const { return q_first >= q_last || kv_first >= kv_last; }
};

class MaskView {
 public:
  MaskView(const MaskSpec& spec, std::int64_t b);

  bool visible(std::int64_t h, std::int64_t i, std::int64_t j) const;
  // Lengths, band and chunks alone decide, so that keys() and ordered() are exact.
  bool is_formula() const { return !has_segments_ && !types_ && !dense_; }
  // An interval outside of which row i sees nothing; the smallest one where is_formula().
  KeyInterval keys(std::int64_t i) const;
  // The part of the rectangle inside the lengths.
  MaskRectangle clip(const MaskRectangle& rectangle) const;
  // What band and chunks leave of a rectangle that is not empty; exact, in constant time.
  BlockVisibility ordered(const MaskRectangle& rectangle) const;

 private:
  bool base(std::int64_t h, std::int64_t i, std::int64_t j) const;
  bool same_type(std::int64_t i, std::int64_t j) const;
  BlockVisibility in_band(const MaskRectangle& rectangle) const;
  BlockVisibility in_chunks(const MaskRectangle& rectangle) const;

  DiagonalBand band_;
  std::int64_t q_length_;
  std::int64_t kv_length_;
  std::int64_t chunk_ = 0;  // 0 = no chunks
  std::int64_t chunk_q_start_ = 0;
  std::int64_t chunk_kv_start_ = 0;
  bool has_segments_;
  std::span<const std::int32_t> q_segments_{};
  std::span<const std::int32_t> kv_segments_{};
  const MaskSpec::TokenTypes* types_;
  std::span<const std::int32_t> q_types_{};
  std::span<const std::int32_t> kv_types_{};
  const DenseMask* dense_;
  std::int64_t dense_batch_ = 0;
};

// Row b of ids [batch, len].
inline std::span<const std::int32_t> ids_of(const std::vector<std::int32_t>& ids, std::int64_t b,
                                            std::int64_t len) {
  return std::span(ids).subspan(static_cast<std::size_t>(b * len), static_cast<std::size_t>(len));
}

// The value of batch b where there may be one for all.
inline std::int64_t value_of(const std::vector<std::int64_t>& values, std::int64_t b) {
  return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(b)];
}

}  // namespace tessera
