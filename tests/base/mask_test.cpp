// SPDX-License-Identifier: Apache-2.0
// Oracles of ejKernel's masks (the quoted sentences), refusals, and what is particular to rules.
#include "tessera/mask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using testing::message_of;
using Ids = std::vector<std::int32_t>;
using Keys = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

// The keys that row i of batch b sees.
Keys keys_of(const MaskSpec& mask, std::int64_t b, std::int64_t i) {
  Keys keys;
  for (std::int64_t j = 0; j < mask.kv_len(); ++j) {
    if (mask.visible(b, 0, i, j)) keys.push_back(j);
  }
  return keys;
}

// "causal 5x5, offset 1 allows (0,1)"
TEST(MaskRules, CausalOffsetMovesTheDiagonal) {
  const MaskSpec mask = MaskSpec::full(1, 5, 5).with_causal({.offsets = {1}});
  EXPECT_EQ(keys_of(mask, 0, 0), (Keys{0, 1}));
  EXPECT_EQ(keys_of(mask, 0, 3), (Keys{0, 1, 2, 3, 4}));
  EXPECT_EQ(keys_of(MaskSpec::full(1, 5, 5).with_causal(), 0, 0), (Keys{0}));
}

// "per-batch offsets [0,1] at row 3"
TEST(MaskRules, CausalOffsetPerBatch) {
  const MaskSpec mask = MaskSpec::full(2, 5, 5).with_causal({.offsets = {0, 1}});
  EXPECT_EQ(keys_of(mask, 0, 3), (Keys{0, 1, 2, 3}));
  EXPECT_EQ(keys_of(mask, 1, 3), (Keys{0, 1, 2, 3, 4}));
}

// "BR (bottom-right) off = Sk - Sq"; "causal/window use BR alignment with off = len_k_b - len_q_b"
TEST(MaskRules, BottomRightAlignmentFollowsTheLengths) {
  const MaskSpec mask =
      MaskSpec::full(2, 3, 7).with_causal({.alignment = CausalAlignment::kBottomRight});
  EXPECT_EQ(keys_of(mask, 0, 0), (Keys{0, 1, 2, 3, 4}));
  const MaskSpec shorter = mask.with_kv_lengths({7, 4}).with_q_lengths({1, 2});
  EXPECT_EQ(keys_of(shorter, 0, 0), (Keys{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(keys_of(shorter, 1, 0), (Keys{0, 1, 2}));
  EXPECT_EQ(keys_of(shorter, 1, 1), (Keys{0, 1, 2, 3}));
  EXPECT_EQ(keys_of(shorter, 1, 2), Keys{}) << "beyond q_lengths";
}

// "window (1,1) row 3 -> {2,3,4}; (2,1) row 3 -> {1..4}"
TEST(MaskRules, SlidingWindowIsInclusive) {
  const MaskSpec full = MaskSpec::full(1, 6, 6);
  EXPECT_EQ(keys_of(full.with_sliding_window(1, 1), 0, 3), (Keys{2, 3, 4}));
  EXPECT_EQ(keys_of(full.with_sliding_window(2, 1), 0, 3), (Keys{1, 2, 3, 4}));
  EXPECT_EQ(keys_of(full.with_sliding_window(0, 0), 0, 3), Keys{3}) << "CANON: diagonal";
  EXPECT_EQ(keys_of(full.with_sliding_window(1, 0, {.offsets = {2}}), 0, 1), (Keys{2, 3}))
      << "row = offset + i";
}

// "causal + window 2 row 4 -> {2,3,4}"
TEST(MaskRules, CausalAndWindowAreBothRequired) {
  const MaskSpec mask = MaskSpec::full(1, 6, 6).with_causal().with_sliding_window(2, 2);
  EXPECT_EQ(keys_of(mask, 0, 4), (Keys{2, 3, 4}));
  EXPECT_EQ(mask, MaskSpec::full(1, 6, 6).with_sliding_window(2, 2).with_causal())
      << "the order of setting does not matter";
}

// "(T-1, 0) with Sq == Sk is exactly causal"
TEST(MaskRules, AWindowOverAllThePastIsCausal) {
  const MaskSpec full = MaskSpec::full(1, 9, 9);
  EXPECT_EQ(full.with_sliding_window(8, 0).to_dense(), full.with_causal().to_dense());
  EXPECT_NE(full.with_sliding_window(7, 0).to_dense(), full.with_causal().to_dense());
}

// "chunk 3 length 6: (4,3) visible, (3,0) not"
TEST(MaskRules, ChunksAreCausalInside) {
  const MaskSpec mask = MaskSpec::full(1, 6, 6).with_chunks(3);
  EXPECT_TRUE(mask.visible(0, 0, 4, 3));
  EXPECT_FALSE(mask.visible(0, 0, 3, 0));
  EXPECT_FALSE(mask.visible(0, 0, 3, 4));
  EXPECT_EQ(keys_of(MaskSpec::full(1, 6, 6).with_chunks(3, {.offsets = {1}}), 0, 2),
            (Keys{0, 1, 2}))
      << "j <= i + offset, and never into the next chunk";
}

// "Oracle: length 8, C=3 -> ids 1,1,1,2,2,2,3,3"; "padding stays -1"
TEST(MaskRules, ChunkNumbersAsSegments) {
  EXPECT_EQ(chunk_segment_ids(1, Ids(8, 0), 3), (Ids{1, 1, 1, 2, 2, 2, 3, 3}));
  EXPECT_EQ(chunk_segment_ids(2, Ids{0, 0, 0, -1, 7, 7, 7, 7}, 2), (Ids{1, 1, 2, -1, 1, 1, 2, 2}));
}

TEST(MaskRules, ExtremeOffsetsDoNotWrapAround) {
  const MaskSpec full = MaskSpec::full(1, 4, 6);
  const DenseMask all = full.to_dense(), none = MaskSpec::random(1, 4, 6, 1.0).to_dense();
  EXPECT_EQ(full.with_causal({.offsets = {kFar}}).to_dense(), all);
  EXPECT_EQ(full.with_causal({.offsets = {-kFar - 1}}).to_dense(), none);
  EXPECT_EQ(full.with_causal({CausalAlignment::kBottomRight, {kFar}}).to_dense(), all);
  EXPECT_EQ(full.with_sliding_window(kFar, kFar).to_dense(), all);
  // i + far - far <= j, and with bottom-right alignment 2 keys later.
  EXPECT_EQ(full.with_sliding_window(kFar, kFar, {.offsets = {kFar}}).to_dense(),
            full.with_sliding_window(0, kFar).to_dense());
  EXPECT_EQ(full.with_sliding_window(kFar, 0, {CausalAlignment::kBottomRight, {kFar}}).to_dense(),
            full.with_sliding_window(0, kFar, {.offsets = {2}}).to_dense());
  EXPECT_EQ(full.with_sliding_window(5, 5, {.offsets = {kFar}}).to_dense(), none);
  EXPECT_EQ(full.with_sliding_window(5, 5, {.offsets = {-kFar - 1}}).to_dense(), none);
  EXPECT_EQ(full.with_chunks(kFar, {.offsets = {kFar}}).to_dense(), all);
  EXPECT_EQ(full.with_chunks(kFar).to_block_layout(kFar, kFar).blocks,
            std::vector{BlockVisibility::kSome});
}

// "j < len_b" of apply_kv_lengths
TEST(MaskRules, KeysBeyondTheirLengthAreHidden) {
  const MaskSpec mask = MaskSpec::full(2, 2, 5).with_kv_lengths({3, 0});
  EXPECT_EQ(keys_of(mask, 0, 1), (Keys{0, 1, 2}));
  EXPECT_EQ(keys_of(mask, 1, 1), Keys{});
  EXPECT_EQ(mask.kv_mask(), (Bytes{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MaskSegments, SelfAttentionSeesItsOwnDocument) {
  const MaskSpec mask = MaskSpec::from_segments(1, Ids{1, 1, 2, -1});
  EXPECT_EQ(mask.to_dense().values, (Bytes{1, 1, 0, 0,  //
                                           1, 1, 0, 0,  //
                                           0, 0, 1, 0,  //
                                           0, 0, 0, 0}));
  EXPECT_EQ(mask.q_mask(), (Bytes{1, 1, 1, 0}));
  EXPECT_TRUE(mask.is_self_attention());
}

// "Oracle: ids [1,1,2,-1]; cross q [1,2,2,-1], kv [1,1,2,2,3]"
TEST(MaskSegments, IdsToMask) {
  const DenseMask self = segment_ids_to_mask(1, {{1, 1, 2, -1}, {1, 1, 2, -1}});
  EXPECT_EQ(self.values, (Bytes{1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
  const QueryKeyIds ids{.q = {1, 2, 2, -1}, .kv = {1, 1, 2, 2, 3}};
  EXPECT_EQ(segment_ids_to_mask(1, ids),
            (DenseMask{.q_len = 4, .kv_len = 5, .values = {1, 1, 0, 0, 0,  //
                                                           0, 0, 1, 1, 0,  //
                                                           0, 0, 1, 1, 0,  //
                                                           0, 0, 0, 0, 0}}));
  EXPECT_EQ(segment_valid_mask(ids.q), (Bytes{1, 1, 1, 0}));
  EXPECT_EQ(segment_valid_mask(ids.kv), (Bytes{1, 1, 1, 1, 1}));
  EXPECT_FALSE(MaskSpec::from_segments(1, ids).is_self_attention());
}

// "ids numbered by first occurrence 0..; all-false rows/columns -> -1"
TEST(MaskSegments, MaskToIdsByFirstOccurrence) {
  const DenseMask mask{.q_len = 4, .kv_len = 5, .values = {0, 0, 0, 1, 1,  //
                                                           0, 0, 0, 0, 0,  //
                                                           1, 0, 1, 0, 0,  //
                                                           0, 0, 0, 7, 1}};
  EXPECT_EQ(mask_to_segment_ids(mask), (QueryKeyIds{{0, -1, 1, 0}, {0, -1, 0, 1, 1}}))
      << "each side is numbered for itself";
  EXPECT_FALSE(is_block_diagonal(mask)) << "0 and 1 mean different blocks on the two sides";
}

// "a causal mask yields ids 0..Q-1 on both sides, i.e. a diagonal mask. Lossy by design"
TEST(MaskSegments, ACausalMaskIsNotBlockDiagonal) {
  const DenseMask causal = MaskSpec::full(1, 4, 4).with_causal().to_dense();
  EXPECT_EQ(mask_to_segment_ids(causal), (QueryKeyIds{{0, 1, 2, 3}, {0, 1, 2, 3}}));
  EXPECT_FALSE(is_block_diagonal(causal));
  EXPECT_TRUE(is_block_diagonal(MaskSpec::full(1, 4, 4).with_sliding_window(0, 0).to_dense()));
}

TEST(MaskSegments, IdsComeBackFromABlockDiagonalMask) {
  const DenseMask mask = segment_ids_to_mask(2, {{0, 0, 1, -1, 0, 1, 1, 2}, {0, 1, 1, 0, 1, -1}});
  EXPECT_TRUE(is_block_diagonal(mask));
  // The second batch's query 7 has the id 2, which no key has.
  EXPECT_EQ(mask_to_segment_ids(mask),
            (QueryKeyIds{{0, 0, 1, -1, 0, 1, 1, -1}, {0, 1, 1, 0, 1, -1}}));
  EXPECT_TRUE(is_block_diagonal(DenseMask{.q_len = 3, .kv_len = 0})) << "nothing to lose";
}

TEST(MaskSegments, HeadsHaveIdsOfTheirOwnOrAreEqual) {
  DenseMask mask{.heads = 2, .q_len = 2, .kv_len = 2, .values = {1, 1, 1, 1, 1, 0, 0, 1}};
  EXPECT_EQ(mask_to_segment_ids(mask, true), (QueryKeyIds{{0, 0, 0, 1}, {0, 0, 0, 1}}));
  EXPECT_TRUE(is_block_diagonal(mask));
  EXPECT_EQ(message_of<InvalidArgument>([&] { mask_to_segment_ids(mask); }),
            "mask: head 1 of batch 0 differs from head 0, so one row of segment ids cannot stand "
            "for all heads; ask for ids per head");
  mask.values = {1, 0, 0, 1, 1, 0, 0, 1};
  EXPECT_EQ(mask_to_segment_ids(mask), (QueryKeyIds{{0, 1}, {0, 1}}));
}

// "2-D [B,S] padding mask -> ids mask-1 (1->0, 0->-1)", "mask = outer product"
TEST(MaskSegments, PaddingHidesRowsAndKeys) {
  const MaskSpec mask = MaskSpec::from_padding(2, Bytes{1, 1, 0, 1, 0, 1});
  ASSERT_TRUE(mask.segments());
  EXPECT_EQ(mask.segments()->q, (Ids{0, 0, -1, 0, -1, 0}));
  EXPECT_EQ(mask.to_dense().values, (Bytes{1, 1, 0, 1, 1, 0, 0, 0, 0,  //
                                           1, 0, 1, 0, 0, 0, 1, 0, 1}));
}

// "Oracle: q segs and kv segs cross [1,2] x [1,1,2,2] -> q positions [0,0], kv [0,1,0,1]";
// "padding q -> -1, kv -> INT32_MAX when derived"
TEST(MaskPositions, RestartInEverySegment) {
  constexpr std::int32_t kPadding = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(MaskSpec::from_segments(1, QueryKeyIds{{1, 2}, {1, 1, 2, 2}}).positions(),
            (QueryKeyIds{{0, 0}, {0, 1, 0, 1}}));
  const MaskSpec padded = MaskSpec::from_segments(2, Ids{3, 3, -1, 3, 3, 5});
  EXPECT_EQ(padded.positions(), (QueryKeyIds{{0, 1, -1, 0, 1, 0}, {0, 1, kPadding, 0, 1, 0}}))
      << "a batch starts anew even where the ids go on";
  EXPECT_EQ(MaskSpec::full(1, 2, 3).with_kv_lengths({2}).positions(),
            (QueryKeyIds{{0, 1}, {0, 1, kPadding}}));
  EXPECT_EQ(positions_from_segments(1, Ids{4, 4, 2, 4}), (Ids{0, 1, 0, 0})) << "runs, not ids";
}

TEST(MaskPositions, DoNotChangeWhatIsVisible) {
  const MaskSpec mask = MaskSpec::full(1, 2, 2).with_causal();
  const MaskSpec placed = mask.with_positions({{7, 3}, {1, 9}});
  EXPECT_EQ(placed.positions(), (QueryKeyIds{{7, 3}, {1, 9}}));
  EXPECT_EQ(placed.to_dense(), mask.to_dense());
  EXPECT_NE(placed, mask);
}

TEST(MaskTokenTypes, CombineWithCausalRows) {
  const QueryKeyIds types{{0, 1, 1, 0}, {0, 1, 1, 0}};
  const MaskSpec causal = MaskSpec::full(1, 4, 4).with_causal();
  using enum TokenTypeCombine;
  // "Used for bidirectional image tokens: union with causal"
  const MaskSpec both = causal.with_token_types(types);
  EXPECT_EQ(keys_of(both, 0, 0), Keys{0});
  EXPECT_EQ(keys_of(both, 0, 1), (Keys{0, 1, 2}));
  EXPECT_EQ(keys_of(both, 0, 3), (Keys{0, 1, 2, 3}));
  const MaskSpec narrow = causal.with_token_types(types, kIntersect);
  EXPECT_EQ(keys_of(narrow, 0, 1), Keys{1});
  EXPECT_EQ(keys_of(narrow, 0, 2), (Keys{1, 2}));
  EXPECT_EQ(keys_of(narrow, 0, 3), Keys{}) << "type 0 matches nothing";
  const MaskSpec only = causal.with_token_types(types, kReplace);
  EXPECT_EQ(keys_of(only, 0, 1), (Keys{1, 2}));
  EXPECT_EQ(keys_of(only, 0, 3), Keys{});
}

// "eq = q_type == kv_type with zero types disabled on the chosen side(s)"
TEST(MaskTokenTypes, ZeroPolicy) {
  const QueryKeyIds types{{0, 1}, {0, 1}};
  const auto shown = [&](ZeroTypePolicy policy) {
    return MaskSpec::full(1, 2, 2)
        .with_token_types(types, TokenTypeCombine::kReplace, policy)
        .to_dense()
        .values;
  };
  EXPECT_EQ(shown(ZeroTypePolicy::kNone), (Bytes{1, 0, 0, 1}));
  EXPECT_EQ(shown(ZeroTypePolicy::kQuery), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(shown(ZeroTypePolicy::kKey), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(shown(ZeroTypePolicy::kBoth), (Bytes{0, 0, 0, 1}));
}

TEST(MaskTokenTypes, NeverReachPaddingOrOtherSegments) {
  const QueryKeyIds same{{1, 1, 1, 1}, {1, 1, 1, 1}};
  const MaskSpec mask = MaskSpec::from_segments(1, Ids{1, 1, 2, -1}).with_causal();
  EXPECT_EQ(keys_of(mask.with_token_types(same), 0, 0), (Keys{0, 1}));
  EXPECT_EQ(keys_of(mask.with_token_types(same), 0, 3), Keys{});
  EXPECT_EQ(keys_of(mask.with_kv_lengths({1}).with_token_types(same), 0, 1), Keys{0});
}

// "Bernoulli(1-sparsity) mask; sparsity 0 full, 1 empty; deterministic by seed"
TEST(MaskRandom, IsTheSameEverywhere) {
  const MaskSpec mask = MaskSpec::random(2, 64, 64, 0.25, 7);
  EXPECT_EQ(mask, MaskSpec::random(2, 64, 64, 0.25, 7));
  EXPECT_NE(mask, MaskSpec::random(2, 64, 64, 0.25, 8));
  const Bytes values = mask.to_dense().values;
  const auto visible = static_cast<double>(std::ranges::count(values, 1));
  // 8192 draws with p = 3/4: the standard deviation is 39.2.
  EXPECT_NEAR(visible, 6144, 5 * 39.2);
  EXPECT_EQ(MaskSpec::random(1, 3, 5, 0).to_dense(), MaskSpec::full(1, 3, 5).to_dense());
  EXPECT_EQ(MaskSpec::random(1, 3, 5, 1).to_dense().values, Bytes(15, 0));
  // From the generator's first outputs for seed 0: e220a839..., 6e789e6a..., 06c45d18...,
  // f88bb8a8..., 1b39896a..., 53cb9f0c..., 2c829abe..., c584133a... against one half.
  EXPECT_EQ(MaskSpec::random(1, 2, 4).to_dense().values, (Bytes{0, 1, 1, 0, 1, 1, 1, 0}));
}

// "create_bias(dtype): 0 where visible" and -infinity elsewhere.
TEST(MaskBias, IsZeroOrMinusInfinity) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(MaskSpec::full(1, 2, 2).with_causal().to_bias(),
            (std::vector<float>{0, kHidden, 0, 0}));
}

TEST(MaskDense, SharesOneHeadOrBatch) {
  const DenseMask shared{.q_len = 1, .kv_len = 3, .values = {1, 0, 5}};
  const MaskSpec mask = MaskSpec::full(2, 1, 3, 2).with_dense(shared);
  EXPECT_EQ(mask.to_dense().values, (Bytes{1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1}));
  const DenseMask heads{.heads = 2, .q_len = 1, .kv_len = 3, .values = {1, 0, 0, 0, 0, 1}};
  const MaskSpec per_head = MaskSpec::from_dense(heads);
  EXPECT_TRUE(per_head.visible(0, 1, 0, 2));
  EXPECT_FALSE(per_head.visible(0, 0, 0, 2));
  EXPECT_EQ(per_head.bounds(0, 0), (KeyInterval{0, 3})) << "bounds hold for all heads";
  DenseMask normal = shared;
  normal.values = {1, 0, 1};
  EXPECT_EQ(MaskSpec::from_dense(shared), MaskSpec::from_dense(normal)) << "5 means visible too";
  EXPECT_TRUE(MaskSpec::full(1, 1, 1).visible(0, 5, 0, 0)) << "1 head stands for all";
}

// apply_kv_lengths: "mask &= j < len_b; keep q rows [len_b - q_len, len_b) clamped to [0, Q -
// q_len]"; "with window w: keep the trailing min(w,K) kv columns ending at len_b"
TEST(MaskSlices, DecodingStepKeepsTheLastRows) {
  const MaskSpec mask = MaskSpec::full(3, 6, 6).with_causal().with_kv_lengths({4, 6, 1});
  const MaskSpec step = mask.last_rows(2);
  EXPECT_EQ(step.q_len(), 2);
  EXPECT_EQ(keys_of(step, 0, 0), (Keys{0, 1, 2}));
  EXPECT_EQ(keys_of(step, 0, 1), (Keys{0, 1, 2, 3}));
  EXPECT_EQ(keys_of(step, 1, 1), (Keys{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(keys_of(step, 2, 0), Keys{0}) << "clamped: rows 0 and 1";
  EXPECT_EQ(step.positions().q, (Ids{2, 3, 4, 5, 0, 1}));

  const MaskSpec tail = step.last_keys(3);
  EXPECT_EQ(keys_of(tail, 0, 0), (Keys{0, 1})) << "keys 1 to 3 are left";
  EXPECT_EQ(keys_of(tail, 1, 1), (Keys{0, 1, 2}));
  EXPECT_EQ(keys_of(tail, 2, 1), Keys{0});
}

// decode: "q row `index` kept (Q->1), kv columns width min(L+R+1,K) starting at clamp(index-L, 0,
// K-width)"; here segment ids and positions are cut too.
TEST(MaskSlices, OneRowAndItsWindow) {
  const MaskSpec mask = MaskSpec::from_segments(1, Ids{1, 1, 1, 2, 2, 2}).with_sliding_window(2, 0);
  const MaskSpec row = mask.slice({4}, 1, {2}, 3);
  EXPECT_EQ(row.to_dense().values, (Bytes{0, 1, 1}));
  EXPECT_EQ(row.positions(), (QueryKeyIds{{1}, {2, 0, 1}}));
}

TEST(MaskPicture, ShowsBlocksWithAxes) {
  const MaskSpec mask = MaskSpec::full(1, 5, 20).with_causal({.offsets = {3}});
  EXPECT_EQ(mask.picture(2),
            "mask 5 x 20, batch 0, head 0, blocks of 2 x 2: '.' none, '+' some, '#' all\n"
            "q\\kv 0       16\n"
            "   0 ##+.......\n"
            "   2 ###+......\n"
            "   4 ####......\n");
  EXPECT_EQ(MaskSpec::full(1, 0, 3).picture(2),
            "mask 0 x 3, batch 0, head 0, blocks of 2 x 2: '.' none, '+' some, '#' all\n"
            "q\\kv 0\n");
}

// A mask of 2^40 rows cannot be visited: formulas decide.
TEST(MaskBlocks, FormulasDoNotVisitElements) {
  constexpr std::int64_t kLong = std::int64_t{1} << 40, kBlock = kLong / 4;
  const MaskSpec full = MaskSpec::full(1, kLong, kLong);
  constexpr auto kN = BlockVisibility::kNone, kS = BlockVisibility::kSome,
                 kA = BlockVisibility::kAll;
  EXPECT_EQ(full.with_causal().to_block_layout(kBlock, kBlock).blocks,
            (std::vector{kS, kN, kN, kN, kA, kS, kN, kN, kA, kA, kS, kN, kA, kA, kA, kS}));
  EXPECT_EQ(full.with_chunks(3).to_block_layout(kLong / 2, kLong / 2).blocks,
            (std::vector{kS, kN, kS, kS}))
      << "a chunk crosses the border";
  EXPECT_EQ(full.with_sliding_window(1000, 0).bounds(0, kLong - 1),
            (KeyInterval{kLong - 1001, kLong}));
  EXPECT_EQ(full.with_chunks(1000).bounds(0, 999'999), (KeyInterval{999'000, 1'000'000}));
}

// Chunk 0 lacks its first keys and chunk 2 its last rows, so that two keys behind the diagonal only
// chunk 1 shows something.
TEST(MaskBlocks, AChunkInTheMiddleCounts) {
  const MaskSpec mask = MaskSpec::full(1, 12, 12).with_chunks(4, {.offsets = {-2}});
  const MaskSpec slice = mask.slice({0}, 10, {2}, 10);
  EXPECT_EQ(keys_of(slice, 0, 3), Keys{});
  EXPECT_EQ(keys_of(slice, 0, 6), Keys{2});
  EXPECT_EQ(keys_of(slice, 0, 9), Keys{});
  EXPECT_EQ(slice.to_block_layout(10, 10).blocks, std::vector{BlockVisibility::kSome});
}

TEST(MaskValues, AreImmutable) {
  const MaskSpec mask = MaskSpec::full(1, 4, 4);
  const MaskSpec causal = mask.with_causal();
  EXPECT_EQ(mask, MaskSpec::full(1, 4, 4));
  EXPECT_NE(mask, causal);
  EXPECT_EQ(causal.with_causal({.offsets = {9}}).with_causal(), causal) << "setting again replaces";
  EXPECT_NE(MaskSpec::random(1, 4, 4), mask);
  EXPECT_EQ(MaskSpec::random(1, 4, 4), MaskSpec::random(1, 4, 4)) << "by value, not by pointer";
}

TEST(MaskRefusals, NameArgumentAndValue) {
  const MaskSpec mask = MaskSpec::full(2, 3, 4, 2);
  const auto said = [](auto call) { return message_of<InvalidArgument>(call); };
  EXPECT_EQ(said([] { MaskSpec::full(1, -1, 4); }), "mask: q_len must be 0 to 2^60, not -1");
  EXPECT_EQ(said([] { MaskSpec::full(1, 1, 1, 0); }), "mask: heads must be 1 to 2^60, not 0");
  EXPECT_EQ(said([&] {
              mask.with_causal({.offsets = {1, 2, 3}});
            }),
            "mask: causal offsets must hold 1 or batch = 2 values, not 3");
  EXPECT_EQ(said([&] { mask.with_chunks(3, {.offsets = {}}); }),
            "mask: chunk offsets must hold 1 or batch = 2 values, not 0");
  EXPECT_EQ(said([&] { mask.with_sliding_window(1, -2); }),
            "mask: the sliding window must not be negative, but is (1, -2)");
  EXPECT_EQ(said([&] { mask.with_chunks(0); }),
            "mask: the chunk size must be greater than 0, not 0");
  EXPECT_EQ(said([&] {
              mask.with_kv_lengths({4, 5});
            }),
            "mask: kv_lengths[1] must be 0 to 4, not 5");
  EXPECT_EQ(said([&] {
              mask.with_q_lengths({-1, 3});
            }),
            "mask: q_lengths[0] must be 0 to 3, not -1");
  EXPECT_EQ(said([&] { mask.with_kv_lengths({4}); }),
            "mask: kv_lengths must hold 2 x 1 values, not 1");
  EXPECT_EQ(said([&] {
              mask.with_segments({Ids(6), Ids(7)});
            }),
            "mask: kv segment ids must hold 2 x 4 values, not 7");
  EXPECT_EQ(said([&] {
              mask.with_positions({Ids(5), Ids(8)});
            }),
            "mask: q positions must hold 2 x 3 values, not 5");
  EXPECT_EQ(said([&] {
              mask.with_token_types({Ids(6), Ids(6)});
            }),
            "mask: kv token types must hold 2 x 4 values, not 6");
  EXPECT_EQ(said([&] { mask.with_dense({.heads = 3, .q_len = 3, .kv_len = 4}); }),
            "mask: a dense mask [1, 3, 3, 4] does not fit [1 or 2, 1 or 2, 3, 4]");
  EXPECT_EQ(said([&] { mask.with_dense({.q_len = 3, .kv_len = 4, .values = Bytes(11)}); }),
            "mask: a dense mask [1, 1, 3, 4] cannot hold 11 values");
  EXPECT_EQ(said([] { MaskSpec::from_segments(2, Ids(5)); }),
            "mask: the list of q segment ids has 5 values, which do not make the rows of batch 2");
  EXPECT_EQ(said([] {
              MaskSpec::from_padding(1, Bytes{1, 2});
            }),
            "mask: element 1 of the padding mask must be 0 or 1, not 2");
  EXPECT_EQ(said([] { MaskSpec::random(1, 2, 2, std::nan("")); }),
            "mask: sparsity must be 0 to 1, not nan");
  EXPECT_EQ(said([&] { mask.visible(0, 2, 0, 0); }),
            "mask: index h must be at least 0 and below 2, not 2");
  EXPECT_EQ(said([&] { mask.visible(0, 0, 3, 0); }),
            "mask: index i must be at least 0 and below 3, not 3");
  EXPECT_EQ(said([&] { mask.bounds(-1, 0); }),
            "mask: index b must be at least 0 and below 2, not -1");
  EXPECT_EQ(said([&] { mask.to_block_layout(0, 1); }),
            "mask: block_q must be greater than 0, not 0");
  EXPECT_EQ(said([&] { mask.picture(8, 0, 2); }),
            "mask: index h must be at least 0 and below 2, not 2");
  EXPECT_EQ(said([&] { mask.slice({0, 2}, 2, {0}, 4); }), "mask: q_starts must be 0 to 1, not 2");
  EXPECT_EQ(said([&] { mask.last_rows(4); }),
            "mask: a slice of 4 rows or keys does not fit into 3");
  EXPECT_EQ(said([] { positions_from_segments(3, Ids(4)); }),
            "mask: the list of ids has 4 values, which do not make the rows of batch 3");
}

TEST(MaskMemory, WhatDoesNotFitIsAnError) {
  const std::int64_t length = std::int64_t{1} << 25;
  const MaskSpec large = MaskSpec::full(1, length, length).with_causal();
  EXPECT_THROW(large.to_dense(), OutOfHostMemory);
  EXPECT_THROW(large.to_bias(), OutOfHostMemory);
  EXPECT_THROW(large.to_block_layout(1, 1), OutOfHostMemory);
  EXPECT_THROW(MaskSpec::random(1, length, length), OutOfHostMemory);
  const MaskSpec longest = MaskSpec::full(4, std::int64_t{1} << 60, 1);
  EXPECT_THROW(longest.q_mask(), OutOfHostMemory);
  EXPECT_THROW(longest.positions(), OutOfHostMemory);
}

}  // namespace
}  // namespace tessera
