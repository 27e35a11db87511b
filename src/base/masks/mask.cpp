// SPDX-License-Identifier: Apache-2.0
// How masks are made, and what they refuse.
#include "tessera/mask.hpp"

#include <tuple>
#include <utility>

#include "base/masks/mask_checks.hpp"
#include "base/system/out_of_memory.hpp"
#include "base/tensors/checked.hpp"

namespace tessera {
namespace {

// Sums of two lengths and a chunk's end stay far inside of 64 bits.
constexpr std::int64_t kMaxLength = std::int64_t{1} << 60;

void check_extent(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kMaxLength) return;
  refuse_mask(std::string(name) + " must be " + std::to_string(least) + " to 2^60, not " +
              std::to_string(value));
}

void check_lengths(const char* name, const std::vector<std::int64_t>& lengths, std::int64_t batch,
                   std::int64_t most) {
  check_count(name, lengths.size(), batch, 1);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] >= 0 && lengths[b] <= most) continue;
    refuse_mask(std::string(name) + "[" + std::to_string(b) + "] must be 0 to " +
                std::to_string(most) + ", not " + std::to_string(lengths[b]));
  }
}

// A fresh number per step of the state (Steele, Lea, Flood 2014).
std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

MaskSpec::MaskSpec(std::int64_t batch, std::int64_t heads, std::int64_t q_len, std::int64_t kv_len)
    : batch_(batch), heads_(heads), q_len_(q_len), kv_len_(kv_len) {
  check_extent("batch", batch, 0);
  check_extent("heads", heads, 1);
  check_extent("q_len", q_len, 0);
  check_extent("kv_len", kv_len, 0);
}

MaskSpec MaskSpec::full(std::int64_t batch, std::int64_t q_len, std::int64_t kv_len,
                        std::int64_t heads) try {
  return {batch, heads, q_len, kv_len};
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::from_segments(std::int64_t batch, QueryKeyIds ids) try {
  const std::int64_t q_len = row_length("the list of q segment ids", ids.q.size(), batch);
  const std::int64_t kv_len = row_length("the list of kv segment ids", ids.kv.size(), batch);
  return MaskSpec(batch, 1, q_len, kv_len).with_segments(std::move(ids));
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::from_segments(std::int64_t batch, const std::vector<std::int32_t>& ids) try {
  return from_segments(batch, QueryKeyIds{.q = ids, .kv = ids});
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::from_padding(std::int64_t batch, std::span<const std::uint8_t> mask) try {
  std::vector<std::int32_t> ids(mask.size());
  for (std::size_t n = 0; n < mask.size(); ++n) {
    if (mask[n] > 1) {
      refuse_mask("element " + std::to_string(n) + " of the padding mask must be 0 or 1, not " +
                  std::to_string(mask[n]));
    }
    ids[n] = static_cast<std::int32_t>(mask[n]) - 1;
  }
  return from_segments(batch, ids);
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::from_dense(DenseMask mask) try {
  const MaskSpec spec(mask.batch, mask.heads, mask.q_len, mask.kv_len);
  return spec.with_dense(std::move(mask));
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::random(std::int64_t batch, std::int64_t q_len, std::int64_t kv_len,
                          double sparsity, std::uint64_t seed) try {
  const MaskSpec spec(batch, 1, q_len, kv_len);
  if (!(sparsity >= 0 && sparsity <= 1)) {
    refuse_mask("sparsity must be 0 to 1, not " + std::to_string(sparsity));
  }
  DenseMask mask{.batch = batch, .q_len = q_len, .kv_len = kv_len};
  mask.values.resize(static_cast<std::size_t>(
      mul_or_throw(mul_or_throw(batch, q_len, "a mask"), kv_len, "a mask")));
  for (std::uint8_t& value : mask.values) {
    value = static_cast<double>(split_mix(seed) >> 11) * 0x1p-53 < 1 - sparsity ? 1 : 0;
  }
  return spec.with_dense(std::move(mask));
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_causal(Diagonal diagonal) const try {
  check_per_batch("causal offsets", diagonal.offsets.size(), batch_);
  MaskSpec result = *this;
  result.causal_ = std::move(diagonal);
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_sliding_window(std::int64_t left, std::int64_t right,
                                       Diagonal diagonal) const try {
  if (left < 0 || right < 0) {
    refuse_mask("the sliding window must not be negative, but is (" + std::to_string(left) + ", " +
                std::to_string(right) + ")");
  }
  check_per_batch("sliding window offsets", diagonal.offsets.size(), batch_);
  MaskSpec result = *this;
  result.window_ = Window{.left = left, .right = right, .diagonal = std::move(diagonal)};
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_chunks(std::int64_t size, Diagonal diagonal) const try {
  if (size <= 0) refuse_mask("the chunk size must be greater than 0, not " + std::to_string(size));
  check_per_batch("chunk offsets", diagonal.offsets.size(), batch_);
  MaskSpec result = *this;
  result.chunks_ = Chunks{.size = size, .diagonal = std::move(diagonal)};
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_segments(QueryKeyIds ids) const try {
  check_count("q segment ids", ids.q.size(), batch_, q_len_);
  check_count("kv segment ids", ids.kv.size(), batch_, kv_len_);
  MaskSpec result = *this;
  result.segments_ = std::move(ids);
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_positions(QueryKeyIds positions) const try {
  check_count("q positions", positions.q.size(), batch_, q_len_);
  check_count("kv positions", positions.kv.size(), batch_, kv_len_);
  MaskSpec result = *this;
  result.positions_ = std::move(positions);
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_q_lengths(std::vector<std::int64_t> lengths) const try {
  check_lengths("q_lengths", lengths, batch_, q_len_);
  MaskSpec result = *this;
  result.q_lengths_ = std::move(lengths);
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_kv_lengths(std::vector<std::int64_t> lengths) const try {
  check_lengths("kv_lengths", lengths, batch_, kv_len_);
  MaskSpec result = *this;
  result.kv_lengths_ = std::move(lengths);
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_dense(DenseMask mask) const try {
  const auto one_or = [](std::int64_t extent, std::int64_t all) {
    return extent == 1 || extent == all;
  };
  if (!one_or(mask.batch, batch_) || !one_or(mask.heads, heads_) || mask.q_len != q_len_ ||
      mask.kv_len != kv_len_) {
    refuse_mask("a dense mask [" + std::to_string(mask.batch) + ", " + std::to_string(mask.heads) +
                ", " + std::to_string(mask.q_len) + ", " + std::to_string(mask.kv_len) +
                "] does not fit [1 or " + std::to_string(batch_) + ", 1 or " +
                std::to_string(heads_) + ", " + std::to_string(q_len_) + ", " +
                std::to_string(kv_len_) + "]");
  }
  check_dense(mask);
  // So that equal masks compare equal.
  for (std::uint8_t& value : mask.values) value = value != 0 ? 1 : 0;
  MaskSpec result = *this;
  result.dense_ = std::make_shared<const DenseMask>(std::move(mask));
  return result;
} catch (...) {
  rethrow_as_error();
}

MaskSpec MaskSpec::with_token_types(QueryKeyIds types, TokenTypeCombine combine,
                                    ZeroTypePolicy zero_policy) const try {
  check_count("q token types", types.q.size(), batch_, q_len_);
  check_count("kv token types", types.kv.size(), batch_, kv_len_);
  MaskSpec result = *this;
  result.token_types_ =
      TokenTypes{.ids = std::move(types), .combine = combine, .zero_policy = zero_policy};
  return result;
} catch (...) {
  rethrow_as_error();
}

bool operator==(const MaskSpec& a, const MaskSpec& b) {
  const auto rules = [](const MaskSpec& m) {
    return std::tie(m.batch_, m.heads_, m.q_len_, m.kv_len_, m.causal_, m.window_, m.chunks_,
                    m.segments_, m.positions_, m.token_types_, m.q_lengths_, m.kv_lengths_);
  };
  if (rules(a) != rules(b)) return false;
  return a.dense_ == b.dense_ || (a.dense_ && b.dense_ && *a.dense_ == *b.dense_);
}

}  // namespace tessera
