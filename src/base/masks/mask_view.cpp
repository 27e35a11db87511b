// SPDX-License-Identifier: Apache-2.0
#include "base/masks/mask_view.hpp"

#include <algorithm>

namespace tessera {

MaskView::MaskView(const MaskSpec& spec, std::int64_t b)
    : band_(spec.band(b)),
      q_length_(spec.q_length(b)),
      kv_length_(spec.kv_length(b)),
      has_segments_(spec.segments().has_value()),
      types_(spec.token_types() ? &*spec.token_types() : nullptr),
      dense_(spec.dense()) {
  if (spec.chunks()) {
    chunk_ = spec.chunks()->size;
    chunk_q_start_ = value_of(spec.chunks()->q_starts, b);
    chunk_kv_start_ = value_of(spec.chunks()->kv_starts, b);
  }
  if (has_segments_) {
    q_segments_ = ids_of(spec.segments()->q, b, spec.q_len());
    kv_segments_ = ids_of(spec.segments()->kv, b, spec.kv_len());
  }
  if (types_) {
    q_types_ = ids_of(types_->ids.q, b, spec.q_len());
    kv_types_ = ids_of(types_->ids.kv, b, spec.kv_len());
  }
  if (dense_ && dense_->batch > 1) dense_batch_ = b;
}

bool MaskView::base(std::int64_t h, std::int64_t i, std::int64_t j) const {
  if (j - i < band_.low || j - i > band_.high) return false;
  if (chunk_ > 0 && (i + chunk_q_start_) / chunk_ != (j + chunk_kv_start_) / chunk_) return false;
  if (!dense_) return true;
  const std::int64_t head = dense_->heads > 1 ? h : 0;
  const std::int64_t row = (dense_batch_ * dense_->heads + head) * dense_->q_len + i;
  return dense_->values[static_cast<std::size_t>(row * dense_->kv_len + j)] != 0;
}

bool MaskView::same_type(std::int64_t i, std::int64_t j) const {
  const std::int32_t type = q_types_[static_cast<std::size_t>(i)];
  return type == kv_types_[static_cast<std::size_t>(j)] &&
         (type != 0 || types_->zero_policy == ZeroTypePolicy::kNone);
}

bool MaskView::visible(std::int64_t h, std::int64_t i, std::int64_t j) const {
  if (i >= q_length_ || j >= kv_length_) return false;
  if (has_segments_) {
    const std::int32_t segment = q_segments_[static_cast<std::size_t>(i)];
    if (segment < 0 || segment != kv_segments_[static_cast<std::size_t>(j)]) return false;
  }
  if (!types_) return base(h, i, j);
  switch (types_->combine) {
    case TokenTypeCombine::kUnion:
      return same_type(i, j) || base(h, i, j);
    case TokenTypeCombine::kIntersect:
      return same_type(i, j) && base(h, i, j);
    case TokenTypeCombine::kReplace:
      break;
  }
  return same_type(i, j);
}

KeyInterval MaskView::keys(std::int64_t i) const {
  if (i >= q_length_) return {};
  KeyInterval keys{.first = 0, .last = kv_length_};
  if (!types_ || types_->combine == TokenTypeCombine::kIntersect) {
    keys.first = std::max(keys.first, i + band_.low);
    keys.last = std::min(keys.last, i + band_.high + 1);
    if (chunk_ > 0) {
      const std::int64_t position = i + chunk_q_start_;
      const std::int64_t start = position - position % chunk_ - chunk_kv_start_;
      keys.first = std::max(keys.first, start);
      keys.last = std::min(keys.last, start + chunk_);
    }
  }
  return keys.first < keys.last ? keys : KeyInterval{};
}

MaskRectangle MaskView::clip(const MaskRectangle& rectangle) const {
  return {.q_first = rectangle.q_first,
          .q_last = std::min(rectangle.q_last, q_length_),
          .kv_first = rectangle.kv_first,
          .kv_last = std::min(rectangle.kv_last, kv_length_)};
}

// j - i takes every value between those of two corners.
BlockVisibility MaskView::in_band(const MaskRectangle& rectangle) const {
  const std::int64_t least = rectangle.kv_first - (rectangle.q_last - 1);
  const std::int64_t most = (rectangle.kv_last - 1) - rectangle.q_first;
  if (std::max(least, band_.low) > std::min(most, band_.high)) return BlockVisibility::kNone;
  return band_.low <= least && most <= band_.high ? BlockVisibility::kAll : BlockVisibility::kSome;
}

// Visible are squares on a diagonal. Those between the first and the last that the rectangle meets
// are whole and lie the same way to the band, so one of them speaks for all.
BlockVisibility MaskView::in_chunks(const MaskRectangle& rectangle) const {
  const std::int64_t q_first = (rectangle.q_first + chunk_q_start_) / chunk_;
  const std::int64_t q_last = (rectangle.q_last - 1 + chunk_q_start_) / chunk_;
  const std::int64_t kv_first = (rectangle.kv_first + chunk_kv_start_) / chunk_;
  const std::int64_t kv_last = (rectangle.kv_last - 1 + chunk_kv_start_) / chunk_;
  if (q_first == q_last && kv_first == kv_last && q_first == kv_first) return in_band(rectangle);

  const std::int64_t first = std::max(q_first, kv_first);
  const std::int64_t last = std::min(q_last, kv_last);
  const auto touches = [&](std::int64_t square) {
    const std::int64_t q = square * chunk_ - chunk_q_start_;
    const std::int64_t kv = square * chunk_ - chunk_kv_start_;
    return in_band({.q_first = std::max(rectangle.q_first, q),
                    .q_last = std::min(rectangle.q_last, q + chunk_),
                    .kv_first = std::max(rectangle.kv_first, kv),
                    .kv_last = std::min(rectangle.kv_last, kv + chunk_)}) != BlockVisibility::kNone;
  };
  if (first > last) return BlockVisibility::kNone;
  const bool any = touches(first) || touches(last) || (last - first > 1 && touches(first + 1));
  return any ? BlockVisibility::kSome : BlockVisibility::kNone;
}

BlockVisibility MaskView::ordered(const MaskRectangle& rectangle) const {
  return chunk_ > 0 ? in_chunks(rectangle) : in_band(rectangle);
}

}  // namespace tessera
