// SPDX-License-Identifier: Apache-2.0
// Random masks of odd sizes against the formulas of mask.hpp, written out once more below from the
// public parts and without a shortcut.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "tessera/mask.hpp"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

class Generator {
 public:
  explicit Generator(unsigned seed) : bits_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::vector<std::int64_t> values(std::int64_t count, std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> result;
    for (std::int64_t n = 0; n < count; ++n) result.push_back(between(least, most));
    return result;
  }
  // Runs of ids as in packed documents, so that blocks of one id occur.
  Ids ids(std::int64_t count, std::int64_t least, std::int64_t most) {
    Ids result;
    std::int64_t id = between(least, most);
    for (std::int64_t n = 0; n < count; ++n) {
      if (chance(15)) id = between(least, most);
      result.push_back(static_cast<std::int32_t>(id));
    }
    return result;
  }
  Diagonal diagonal(std::int64_t batch) {
    return {.alignment = chance(50) ? CausalAlignment::kTopLeft : CausalAlignment::kBottomRight,
            .offsets = values(chance(50) ? 1 : batch, -6, 6)};
  }

 private:
  std::mt19937_64 bits_;
};

struct Sample {
  MaskSpec mask;
  std::optional<std::vector<std::int64_t>> q_lengths{};
  std::optional<std::vector<std::int64_t>> kv_lengths{};
};

// Each rule with some probability; none of the arbitrary ones where formula is true.
Sample sample_of(Generator& random, bool formula) {
  const std::int64_t batch = random.between(1, 3), heads = random.between(1, 2);
  const std::int64_t q_len = random.between(1, 37), kv_len = random.between(1, 37);
  Sample sample{.mask = MaskSpec::full(batch, q_len, kv_len, heads)};
  MaskSpec& mask = sample.mask;
  if (random.chance(50)) mask = mask.with_causal(random.diagonal(batch));
  if (random.chance(40)) {
    mask = mask.with_sliding_window(random.between(0, 20), random.between(0, 20),
                                    random.diagonal(batch));
  }
  if (random.chance(40))
    mask = mask.with_chunks(random.between(1, random.chance(50) ? 4 : 20), random.diagonal(batch));
  if (random.chance(40)) {
    sample.q_lengths = random.values(batch, 0, q_len);
    mask = mask.with_q_lengths(*sample.q_lengths);
  }
  if (random.chance(40)) {
    sample.kv_lengths = random.values(batch, 0, kv_len);
    mask = mask.with_kv_lengths(*sample.kv_lengths);
  }
  if (formula) return sample;
  if (random.chance(50)) {
    mask =
        mask.with_segments({random.ids(batch * q_len, -1, 2), random.ids(batch * kv_len, -1, 2)});
  }
  if (random.chance(50)) {
    mask =
        mask.with_token_types({random.ids(batch * q_len, 0, 2), random.ids(batch * kv_len, 0, 2)},
                              static_cast<TokenTypeCombine>(random.between(0, 2)),
                              static_cast<ZeroTypePolicy>(random.between(0, 3)));
  }
  if (random.chance(40)) {
    DenseMask dense{.batch = random.chance(50) ? 1 : batch,
                    .heads = random.chance(50) ? 1 : heads,
                    .q_len = q_len,
                    .kv_len = kv_len};
    const Ids values = random.ids(dense.batch * dense.heads * q_len * kv_len, 0, 3);
    dense.values.assign(values.begin(), values.end());
    mask = mask.with_dense(dense);
  }
  return sample;
}

std::int64_t offset_of(const Sample& sample, const Diagonal& diagonal, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b);
  const std::int64_t own =
      diagonal.offsets.size() == 1 ? diagonal.offsets[0] : diagonal.offsets[at];
  if (diagonal.alignment == CausalAlignment::kTopLeft) return own;
  return own + (sample.kv_lengths ? (*sample.kv_lengths)[at] : sample.mask.kv_len()) -
         (sample.q_lengths ? (*sample.q_lengths)[at] : sample.mask.q_len());
}

bool expected(const Sample& sample, std::int64_t b, std::int64_t h, std::int64_t i,
              std::int64_t j) {
  const MaskSpec& mask = sample.mask;
  const auto q = static_cast<std::size_t>(b * mask.q_len() + i);
  const auto kv = static_cast<std::size_t>(b * mask.kv_len() + j);
  bool base = true;
  if (mask.causal()) base &= j <= i + offset_of(sample, *mask.causal(), b);
  if (mask.window()) {
    const std::int64_t row = i + offset_of(sample, mask.window()->diagonal, b);
    base &= row - mask.window()->left <= j && j <= row + mask.window()->right;
  }
  if (mask.chunks()) {
    base &= i / mask.chunks()->size == j / mask.chunks()->size;
    base &= j <= i + offset_of(sample, mask.chunks()->diagonal, b);
  }
  if (const DenseMask* dense = mask.dense()) {
    const std::int64_t row =
        (dense->batch == 1 ? 0 : b) * dense->heads + (dense->heads == 1 ? 0 : h);
    base &=
        dense->values[static_cast<std::size_t>((row * mask.q_len() + i) * mask.kv_len() + j)] != 0;
  }
  bool pattern = base;
  if (mask.token_types()) {
    const auto& types = *mask.token_types();
    bool same = types.ids.q[q] == types.ids.kv[kv];
    using enum ZeroTypePolicy;
    if (types.zero_policy == kQuery || types.zero_policy == kBoth) same &= types.ids.q[q] != 0;
    if (types.zero_policy == kKey || types.zero_policy == kBoth) same &= types.ids.kv[kv] != 0;
    pattern = types.combine == TokenTypeCombine::kUnion       ? base || same
              : types.combine == TokenTypeCombine::kIntersect ? base && same
                                                              : same;
  }
  if (mask.segments()) {
    const std::int32_t q_id = mask.segments()->q[q], kv_id = mask.segments()->kv[kv];
    pattern &= q_id == kv_id && q_id >= 0 && kv_id >= 0;
  }
  if (sample.q_lengths) pattern &= i < (*sample.q_lengths)[static_cast<std::size_t>(b)];
  if (sample.kv_lengths) pattern &= j < (*sample.kv_lengths)[static_cast<std::size_t>(b)];
  return pattern;
}

// Calls check(sample, random) for 400 masks, half of them decided by formulas alone.
template <class Check>
void for_samples(unsigned seed, Check check) {
  Generator random(seed);
  for (int n = 0; n < 400; ++n) {
    SCOPED_TRACE("sample " + std::to_string(n));
    const Sample sample = sample_of(random, n % 2 == 0);
    ASSERT_NO_FATAL_FAILURE(check(sample, random));
  }
}

TEST(MaskProperties, VisibleAndDenseAreTheFormula) {
  for_samples(1, [](const Sample& sample, Generator&) {
    const MaskSpec& mask = sample.mask;
    const DenseMask dense = mask.to_dense();
    std::size_t at = 0;
    for (std::int64_t b = 0; b < mask.batch(); ++b) {
      for (std::int64_t h = 0; h < mask.heads(); ++h) {
        for (std::int64_t i = 0; i < mask.q_len(); ++i) {
          for (std::int64_t j = 0; j < mask.kv_len(); ++j, ++at) {
            const bool visible = expected(sample, b, h, i, j);
            ASSERT_EQ(mask.visible(b, h, i, j), visible) << b << " " << h << " " << i << " " << j;
            ASSERT_EQ(dense.values[at], visible ? 1 : 0) << b << " " << h << " " << i << " " << j;
          }
        }
      }
    }
    ASSERT_EQ(at, dense.values.size());
  });
}

BlockVisibility counted(const Sample& sample, std::int64_t b, std::int64_t h, std::int64_t i0,
                        std::int64_t i1, std::int64_t j0, std::int64_t j1) {
  std::int64_t visible = 0;
  for (std::int64_t i = i0; i < i1; ++i) {
    for (std::int64_t j = j0; j < j1; ++j) visible += expected(sample, b, h, i, j) ? 1 : 0;
  }
  if (visible == 0) return BlockVisibility::kNone;
  return visible == (i1 - i0) * (j1 - j0) ? BlockVisibility::kAll : BlockVisibility::kSome;
}

TEST(MaskProperties, BlockLayoutIsWhatCountingGives) {
  std::map<BlockVisibility, int> seen;
  for_samples(2, [&](const Sample& sample, Generator& random) {
    const MaskSpec& mask = sample.mask;
    const std::int64_t block_q = random.between(1, 12), block_k = random.between(1, 12);
    const BlockLayout layout = mask.to_block_layout(block_q, block_k);
    ASSERT_EQ(layout.q_blocks, (mask.q_len() + block_q - 1) / block_q);
    ASSERT_EQ(layout.kv_blocks, (mask.kv_len() + block_k - 1) / block_k);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < mask.batch(); ++b) {
      for (std::int64_t h = 0; h < mask.heads(); ++h) {
        for (std::int64_t i = 0; i < mask.q_len(); i += block_q) {
          for (std::int64_t j = 0; j < mask.kv_len(); j += block_k, ++at) {
            const BlockVisibility truth =
                counted(sample, b, h, i, std::min(i + block_q, mask.q_len()), j,
                        std::min(j + block_k, mask.kv_len()));
            ASSERT_EQ(layout.blocks[at], truth) << b << " " << h << " " << i << " " << j;
            ++seen[truth];
          }
        }
      }
    }
    ASSERT_EQ(at, layout.blocks.size());
  });
  // All kinds must occur for the comparison to mean something.
  EXPECT_GT(seen[BlockVisibility::kNone], 1000);
  EXPECT_GT(seen[BlockVisibility::kSome], 1000);
  EXPECT_GT(seen[BlockVisibility::kAll], 300);
}

TEST(MaskProperties, BoundsAreTheSmallestInterval) {
  int gaps = 0;
  for_samples(3, [&](const Sample& sample, Generator&) {
    const MaskSpec& mask = sample.mask;
    for (std::int64_t b = 0; b < mask.batch(); ++b) {
      for (std::int64_t i = 0; i < mask.q_len(); ++i) {
        KeyInterval truth{};
        std::int64_t visible = 0;
        for (std::int64_t j = 0; j < mask.kv_len(); ++j) {
          bool any = false;
          for (std::int64_t h = 0; h < mask.heads(); ++h) any |= expected(sample, b, h, i, j);
          if (!any) continue;
          if (visible == 0) truth.first = j;
          truth.last = j + 1;
          ++visible;
        }
        ASSERT_EQ(mask.bounds(b, i), truth) << "batch " << b << " row " << i;
        gaps += visible < truth.last - truth.first ? 1 : 0;
      }
    }
  });
  EXPECT_GT(gaps, 100) << "intervals with holes must occur";
}

TEST(MaskProperties, SlicesShowTheirPartOfTheOriginal) {
  for_samples(4, [](const Sample& sample, Generator& random) {
    const MaskSpec& mask = sample.mask;
    const std::int64_t q_len = random.between(0, mask.q_len());
    const std::int64_t kv_len = random.between(0, mask.kv_len());
    const auto starts = [&](std::int64_t most) {
      return random.values(random.chance(50) ? 1 : mask.batch(), 0, most);
    };
    const auto q_starts = starts(mask.q_len() - q_len), kv_starts = starts(mask.kv_len() - kv_len);
    const MaskSpec slice = mask.slice(q_starts, q_len, kv_starts, kv_len);
    // A slice of a slice moves what has moved before.
    const MaskSpec inner =
        slice.slice({q_len / 2}, q_len - q_len / 2, {kv_len / 3}, kv_len - kv_len / 3);
    for (std::int64_t b = 0; b < mask.batch(); ++b) {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t q0 = q_starts.size() == 1 ? q_starts[0] : q_starts[at];
      const std::int64_t kv0 = kv_starts.size() == 1 ? kv_starts[0] : kv_starts[at];
      for (std::int64_t h = 0; h < mask.heads(); ++h) {
        for (std::int64_t i = 0; i < q_len; ++i) {
          for (std::int64_t j = 0; j < kv_len; ++j) {
            const bool truth = expected(sample, b, h, q0 + i, kv0 + j);
            ASSERT_EQ(slice.visible(b, h, i, j), truth) << b << " " << h << " " << i << " " << j;
            if (i < q_len / 2 || j < kv_len / 3) continue;
            ASSERT_EQ(inner.visible(b, h, i - q_len / 2, j - kv_len / 3), truth);
          }
        }
      }
    }
  });
}

// The formulas for chunks know where a slice begins.
TEST(MaskProperties, BlockLayoutAndBoundsOfSlices) {
  for_samples(5, [](const Sample& sample, Generator& random) {
    const MaskSpec& mask = sample.mask;
    const std::int64_t q0 = random.between(0, mask.q_len() - 1);
    const std::int64_t kv0 = random.between(0, mask.kv_len() - 1);
    const std::int64_t q_len = mask.q_len() - q0, kv_len = mask.kv_len() - kv0;
    const MaskSpec slice = mask.slice({q0}, q_len, {kv0}, kv_len);
    const BlockLayout layout = slice.to_block_layout(4, 7);
    for (std::int64_t i = 0; i < q_len; ++i) {
      KeyInterval truth{};
      for (std::int64_t j = kv_len; j-- > 0;) {
        bool any = false;
        for (std::int64_t h = 0; h < mask.heads(); ++h)
          any |= expected(sample, 0, h, q0 + i, kv0 + j);
        if (any) truth = {.first = j, .last = truth.last == 0 ? j + 1 : truth.last};
      }
      ASSERT_EQ(slice.bounds(0, i), truth) << "row " << i;
    }
    for (std::int64_t n = 0; n < layout.q_blocks * layout.kv_blocks; ++n) {
      const std::int64_t i = n / layout.kv_blocks * 4, j = n % layout.kv_blocks * 7;
      ASSERT_EQ(layout.blocks[static_cast<std::size_t>(n)],
                counted(sample, 0, 0, q0 + i, q0 + std::min(i + 4, q_len), kv0 + j,
                        kv0 + std::min(j + 7, kv_len)))
          << "block at " << i << " " << j;
    }
  });
}

TEST(MaskProperties, SegmentIdsComeBack) {
  Generator random(6);
  for (int n = 0; n < 200; ++n) {
    SCOPED_TRACE("sample " + std::to_string(n));
    // Sorted, so that both sides meet the blocks in the same order.
    const std::int64_t q_len = random.between(1, 30), kv_len = random.between(1, 30);
    const auto sorted = [&](std::int64_t len) {
      Ids ids = random.ids(len, 0, 3);
      std::ranges::sort(ids);
      return ids;
    };
    const QueryKeyIds ids{.q = sorted(q_len), .kv = sorted(kv_len)};
    const DenseMask mask = segment_ids_to_mask(1, ids);
    ASSERT_TRUE(is_block_diagonal(mask));
    ASSERT_EQ(segment_ids_to_mask(1, mask_to_segment_ids(mask)), mask);
  }
}

}  // namespace
}  // namespace tessera
