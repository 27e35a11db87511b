// SPDX-License-Identifier: Apache-2.0
// Parts of masks: rules move, arrays are cut.
#include <algorithm>

#include "base/masks/mask_checks.hpp"
#include "base/masks/mask_view.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/tensors/checked.hpp"
#include "tessera/mask.hpp"

namespace tessera {
namespace {

using Starts = std::vector<std::int64_t>;

void check_starts(const char* name, const Starts& starts, std::int64_t batch, std::int64_t len,
                  std::int64_t whole) {
  if (len < 0 || len > whole) {
    refuse_mask("a slice of " + std::to_string(len) + " rows or keys does not fit into " +
                std::to_string(whole));
  }
  check_per_batch(name, starts.size(), batch);
  for (const std::int64_t start : starts) {
    if (start >= 0 && start <= whole - len) continue;
    refuse_mask(std::string(name) + " must be 0 to " + std::to_string(whole - len) + ", not " +
                std::to_string(start));
  }
}

std::vector<std::int32_t> cut(const std::vector<std::int32_t>& ids, std::int64_t batch,
                              std::int64_t whole, const Starts& starts, std::int64_t len) {
  std::vector<std::int32_t> result;
  result.reserve(static_cast<std::size_t>(batch * len));
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto part =
        ids_of(ids, b, whole)
            .subspan(static_cast<std::size_t>(value_of(starts, b)), static_cast<std::size_t>(len));
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

DenseMask cut(const DenseMask& mask, std::int64_t batch, const Starts& q_starts, std::int64_t q_len,
              const Starts& kv_starts, std::int64_t kv_len) {
  const bool one_for_all = mask.batch == 1 && q_starts.size() == 1 && kv_starts.size() == 1;
  DenseMask result{
      .batch = one_for_all ? 1 : batch, .heads = mask.heads, .q_len = q_len, .kv_len = kv_len};
  for (std::int64_t b = 0; b < result.batch; ++b) {
    for (std::int64_t h = 0; h < mask.heads; ++h) {
      const std::int64_t first = ((mask.batch > 1 ? b : 0) * mask.heads + h) * mask.q_len;
      for (std::int64_t i = 0; i < q_len; ++i) {
        const auto row = mask.values.begin() + (first + value_of(q_starts, b) + i) * mask.kv_len +
                         value_of(kv_starts, b);
        result.values.insert(result.values.end(), row, row + kv_len);
      }
    }
  }
  return result;
}

Starts sum(const Starts& a, const Starts& b) {
  Starts result = a.size() >= b.size() ? a : b;
  const Starts& other = a.size() >= b.size() ? b : a;
  for (std::size_t n = 0; n < result.size(); ++n) {
    result[n] += value_of(other, static_cast<std::int64_t>(n));
  }
  return result;
}

// The starts that put `len` elements before the end of each sequence.
Starts trailing(std::int64_t len, std::int64_t whole, const Starts& ends) {
  Starts starts;
  for (const std::int64_t end : ends) {
    starts.push_back(
        std::clamp<std::int64_t>(end - len, 0, std::max<std::int64_t>(whole - len, 0)));
  }
  return starts;
}

}  // namespace

MaskSpec MaskSpec::slice(const Starts& q_starts, std::int64_t q_len, const Starts& kv_starts,
                         std::int64_t kv_len) const try {
  check_starts("q_starts", q_starts, batch_, q_len, q_len_);
  check_starts("kv_starts", kv_starts, batch_, kv_len, kv_len_);
  MaskSpec result(batch_, heads_, q_len, kv_len);

  // Row i and key j of the slice are row i + q_start and key j + kv_start of the original.
  const auto moved = [&](const Diagonal& diagonal) {
    Diagonal resolved{.offsets = {}};
    for (std::int64_t b = 0; b < batch_; ++b) {
      const std::int64_t shift =
          alignment_shift(diagonal, b) + value_of(q_starts, b) - value_of(kv_starts, b);
      resolved.offsets.push_back(
          add_or_throw(value_of(diagonal.offsets, b), shift, "mask: the offset of a slice"));
    }
    if (batch_ == 0) resolved.offsets = {0};
    return resolved;
  };
  if (causal_) result.causal_ = moved(*causal_);
  if (window_) {
    result.window_ = window_;
    result.window_->diagonal = moved(window_->diagonal);
  }
  if (chunks_) {
    result.chunks_ = Chunks{.size = chunks_->size,
                            .diagonal = moved(chunks_->diagonal),
                            .q_starts = sum(chunks_->q_starts, q_starts),
                            .kv_starts = sum(chunks_->kv_starts, kv_starts)};
  }
  const auto lengths = [&](const std::optional<Starts>& old, const Starts& starts,
                           std::int64_t len) -> std::optional<Starts> {
    if (!old) return std::nullopt;
    Starts left = *old;
    for (std::size_t b = 0; b < left.size(); ++b) {
      const std::int64_t start = value_of(starts, static_cast<std::int64_t>(b));
      left[b] = std::clamp<std::int64_t>(left[b] - start, 0, len);
    }
    return left;
  };
  result.q_lengths_ = lengths(q_lengths_, q_starts, q_len);
  result.kv_lengths_ = lengths(kv_lengths_, kv_starts, kv_len);
  const auto cut_pair = [&](const QueryKeyIds& ids) {
    return QueryKeyIds{.q = cut(ids.q, batch_, q_len_, q_starts, q_len),
                       .kv = cut(ids.kv, batch_, kv_len_, kv_starts, kv_len)};
  };
  if (segments_) result.segments_ = cut_pair(*segments_);
  if (token_types_) {
    result.token_types_ = TokenTypes{.ids = cut_pair(token_types_->ids),
                                     .combine = token_types_->combine,
                                     .zero_policy = token_types_->zero_policy};
  }
  result.positions_ = cut_pair(positions());
  if (dense_) {
    result.dense_ =
        std::make_shared<const DenseMask>(cut(*dense_, batch_, q_starts, q_len, kv_starts, kv_len));
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::last_rows(std::int64_t q_len) const try {
  Starts ends;
  for (std::int64_t b = 0; b < batch_; ++b) ends.push_back(kv_length(b));
  return slice(trailing(q_len, q_len_, ends), q_len, {0}, kv_len_);
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::last_keys(std::int64_t kv_len) const try {
  Starts ends;
  for (std::int64_t b = 0; b < batch_; ++b) ends.push_back(kv_length(b));
  return slice({0}, q_len_, trailing(kv_len, kv_len_, ends), kv_len);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
