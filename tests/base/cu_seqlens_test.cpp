// SPDX-License-Identifier: Apache-2.0
#include "tessera/cu_seqlens.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using testing::message_of;
using Ids = std::vector<std::int32_t>;
using Pairs = std::vector<std::array<std::int32_t, 2>>;

// ejKernel xla_utils, "Oracle data: lens [3,1,4,2] -> cu [0,3,4,8,10]; C=2 -> chunk offsets
// [0,2,3,5,6]; positions 0,1,2,0,0,1,2,3,0,1; sequence ids 0,0,0,1,2,2,2,2,3,3".
TEST(CuSeqlens, MatchEjKernelsOracle) {
  const Ids lengths{3, 1, 4, 2}, cu{0, 3, 4, 8, 10};
  EXPECT_EQ(cu_seqlens_from_lengths(lengths), cu);
  EXPECT_EQ(sequence_lengths(cu), lengths);
  EXPECT_EQ(chunk_offsets(cu, 2), (Ids{0, 2, 3, 5, 6}));
  EXPECT_EQ(position_ids(cu), (Ids{0, 1, 2, 0, 0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(sequence_ids(cu), (Ids{0, 0, 0, 1, 2, 2, 2, 2, 3, 3}));
  EXPECT_EQ(
      token_indices(cu),
      (Pairs{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {3, 0}, {3, 1}}));
  EXPECT_EQ(chunk_indices(cu, 2), (Pairs{{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}, {3, 0}}));
}

// "Defect: sequence/position/chunk functions derive the sequence index from counting resets, so
// zero-length sequences shift ids. C++: exact with zero-length sequences".
TEST(CuSeqlens, SequencesOfLengthZeroKeepTheirNumber) {
  const Ids cu = cu_seqlens_from_lengths(Ids{0, 2, 0, 0, 3, 0});
  EXPECT_EQ(cu, (Ids{0, 0, 2, 2, 2, 5, 5}));
  EXPECT_EQ(sequence_lengths(cu), (Ids{0, 2, 0, 0, 3, 0}));
  EXPECT_EQ(sequence_ids(cu), (Ids{1, 1, 4, 4, 4}));
  EXPECT_EQ(position_ids(cu), (Ids{0, 1, 0, 1, 2}));
  EXPECT_EQ(token_indices(cu), (Pairs{{1, 0}, {1, 1}, {4, 0}, {4, 1}, {4, 2}}));
  EXPECT_EQ(chunk_offsets(cu, 2), (Ids{0, 0, 1, 1, 1, 3, 3}));
  EXPECT_EQ(chunk_indices(cu, 2), (Pairs{{1, 0}, {4, 0}, {4, 1}}));
}

TEST(CuSeqlens, NoSequencesAndNoTokens) {
  EXPECT_EQ(cu_seqlens_from_lengths({}), Ids{0});
  EXPECT_EQ(sequence_lengths(Ids{0}), Ids{});
  EXPECT_EQ(sequence_ids(Ids{0, 0}), Ids{});
  EXPECT_EQ(chunk_offsets(Ids{0, 0}, 4), (Ids{0, 0}));
}

TEST(CuSeqlens, CountMasksByRows) {
  // Not only a prefix counts: the spec says row sums.
  const std::vector<std::uint8_t> mask{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 9};
  EXPECT_EQ(sequence_lengths_from_mask(3, mask), (Ids{3, 0, 2}));
  EXPECT_EQ(cu_seqlens_from_mask(3, mask), (Ids{0, 3, 3, 5}));
  EXPECT_EQ(cu_seqlens_from_mask(0, {}), Ids{0});
}

TEST(CuSeqlens, ChunksLargerThanSequences) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(chunk_offsets(Ids{0, 3, 3, kMost}, kMost), (Ids{0, 1, 1, 2}));
}

TEST(CuSeqlens, RefuseWithASentence) {
  const std::vector<std::uint8_t> seven(7);
  EXPECT_EQ(message_of<InvalidArgument>([] { sequence_lengths({}); }),
            "cu_seqlens is empty; it must hold at least the 0");
  EXPECT_EQ(message_of<InvalidArgument>([] {
              sequence_ids(Ids{1, 2});
            }),
            "cu_seqlens[0] must be 0, not 1");
  EXPECT_EQ(message_of<InvalidArgument>([] {
              position_ids(Ids{0, 5, 4});
            }),
            "cu_seqlens must not decrease, but cu_seqlens[2] is 4 after 5");
  EXPECT_EQ(message_of<InvalidArgument>([] {
              cu_seqlens_from_lengths(Ids{1, -1});
            }),
            "lengths[1] must not be negative, but is -1");
  EXPECT_EQ(message_of<InvalidArgument>([] {
              cu_seqlens_from_lengths(Ids{2147483647, 1});
            }),
            "the lengths up to lengths[1], 1, add up to more than 32 bits can count");
  EXPECT_EQ(message_of<InvalidArgument>([] {
              chunk_indices(Ids{0, 5}, 0);
            }),
            "chunk_size must be greater than 0, not 0");
  EXPECT_EQ(message_of<InvalidArgument>([&] { sequence_lengths_from_mask(2, seven); }),
            "a mask of 7 elements does not make the rows of batch 2");
  EXPECT_EQ(message_of<InvalidArgument>([&] { sequence_lengths_from_mask(0, seven); }),
            "a mask of 7 elements does not make the rows of batch 0");
}

}  // namespace
}  // namespace tessera
