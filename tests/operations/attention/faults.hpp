// SPDX-License-Identifier: Apache-2.0
// Mistakes that attention kernels have been shipped with, or could be: the model makes them on
// request, and the comparator must see them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::testing {

// FAULT(name, direction, why): what goes wrong, and where it is known from or what causes it.
#define ATTENTION_FAULTS(FAULT)                                                                   \
  FAULT(kDropLastKey, kBoth, "a loop ends one key early")                                         \
  FAULT(kDropFirstKey, kBoth, "a loop begins one key late")                                       \
  FAULT(kDropLastFeature, kBoth, "the tail of head_dim is left out of the dot product")           \
  FAULT(kDropLastTile, kForward, "the number of tiles is rounded down")                           \
  FAULT(kTailKeysNotMasked, kForward, "keys beyond the end are 0 and get weight")                 \
  FAULT(kStaleMaximum, kForward, "the maximum of the first tile serves all tiles")                \
  FAULT(kMaximumFromZero, kForward, "the running maximum begins at 0 and not at -inf")            \
  FAULT(kNothingRescaled, kForward, "a new maximum rescales neither sum nor output")              \
  FAULT(kOutputNotRescaled, kForward, "a new maximum rescales the sum only")                      \
  FAULT(kSumNotRescaled, kForward, "a new maximum rescales the output only")                      \
  FAULT(kSmallTilesSkipped, kForward, "tiles 8 below the maximum are skipped as negligible")      \
  FAULT(kScaleTwice, kBoth, "queries are scaled when loaded, and the scores again")               \
  FAULT(kScaleMissing, kBoth, "the scale is left out")                                            \
  FAULT(kScaleFromDim, kBoth, "softmax_scale is ignored")                                         \
  FAULT(kCapMissing, kBoth, "the cap is left out")                                                \
  FAULT(kCapClamps, kBoth, "the cap cuts off where tanh would bend")                              \
  FAULT(kMaskBeforeCap, kBoth, "a hidden score of -2^31 goes through tanh and comes out as -cap") \
  FAULT(kMaskIsFinite, kForward, "hidden scores are -1e4: a row of them is the mean of V")        \
  FAULT(kMaskedRowIsMean, kForward, "rows that see nothing divide by the number of keys")         \
  FAULT(kMaskedRowIsNan, kForward, "rows that see nothing compute -inf - -inf")                   \
  FAULT(kMaskBatchStride, kBoth, "the mask of batch 0 serves all batches")                        \
  FAULT(kMaskHeadStride, kBoth, "the mask of head 0 serves all heads")                            \
  FAULT(kMaskIgnored, kBoth, "the mask is not read in tiles that are taken for full")             \
  FAULT(kBiasAfterCap, kBoth, "the bias joins after the cap")                                     \
  FAULT(kBiasScaled, kBoth, "the bias joins before the scale")                                    \
  FAULT(kBiasBatchStride, kBoth, "the bias of batch 0 serves all batches")                        \
  FAULT(kBiasOfQueryHead, kBoth, "a bias of key/value heads is read by query head, modulo")       \
  FAULT(kBiasMissing, kBoth, "the bias is left out")                                              \
  FAULT(kLowestBiasHides, kBoth, "a bias that is the lowest number counts as -inf")               \
  FAULT(kInfiniteBiasSeen, kBoth, "a bias of -inf is a number: a row of them is NaN")             \
  FAULT(kCoarseLseTaken, kBackward, "weights of exp(score - lse) where float lost the sum")       \
  FAULT(kSlopeSigned, kBoth, "slopes count the distance with its sign")                           \
  FAULT(kSlopeFromTopLeft, kBoth, "slopes count from the unaligned diagonal")                     \
  FAULT(kSlopeOfKeyHead, kBoth, "the slope of the key/value head")                                \
  FAULT(kSinksPerTile, kForward, "sinks join the denominator in every tile")                      \
  FAULT(kSinksPerSplit, kForward, "sinks join the denominator in every split")                    \
  FAULT(kSinksScaled, kForward, "sinks are scaled like scores")                                   \
  FAULT(kSinksCapped, kForward, "sinks go through the cap")                                       \
  FAULT(kSinksMissing, kForward, "sinks are left out")                                            \
  FAULT(kSinksNotInLse, kForward, "the log-sum-exp is taken before the sinks join")               \
  FAULT(kFirstSinkOnly, kForward, "only the first of several sinks joins")                        \
  FAULT(kSinksOfHeadZero, kForward, "the sinks of head 0 serve all heads")                        \
  FAULT(kWindowLeftShort, kBoth, "the left edge of the window is exclusive")                      \
  FAULT(kWindowLeftLong, kBoth, "the window reaches one key further left")                        \
  FAULT(kWindowRightShort, kBoth, "the right edge of the window is exclusive")                    \
  FAULT(kWindowRightLong, kBoth, "the window reaches one key further right")                      \
  FAULT(kCausalShort, kBoth, "the diagonal is hidden")                                            \
  FAULT(kCausalLong, kBoth, "the key after the diagonal is seen")                                 \
  FAULT(kBottomRightAsTopLeft, kBoth, "the alignment is ignored")                                 \
  FAULT(kAlignedToWhole, kBoth, "bottom-right of the whole tensor, not of the sequence")          \
  FAULT(kChunkLong, kBoth, "chunks are one key longer")                                           \
  FAULT(kChunkIgnored, kBoth, "chunks are ignored")                                               \
  FAULT(kPositionsIgnored, kBoth, "indices are compared in place of positions")                   \
  FAULT(kDistanceWraps, kBoth, "distances of positions wrap at 32 bits")                          \
  FAULT(kFarDistanceHidden, kBoth, "a bound of 2^30 that should be none")                         \
  FAULT(kPaddedOffsetsClamped, kBoth,                                                             \
        "offsets of padded sequences end with the rows of one batch")                             \
  FAULT(kGroupModulo, kBoth, "query head h reads key/value head h mod kv_heads")                  \
  FAULT(kGroupFirst, kBoth, "all query heads read key/value head 0")                              \
  FAULT(kNextSequencesKey, kBoth, "the first key of the next sequence is seen")                   \
  FAULT(kEmptySequenceLeaks, kForward, "a sequence without keys gets the first key")              \
  FAULT(kRowsBeyondLength, kForward, "rows beyond q_lengths are computed all the same")           \
  FAULT(kNextSequencesRow, kForward, "a tile writes its last row into the next sequence")         \
  FAULT(kPaddingSeesPadding, kBoth, "segment -1 equals segment -1")                               \
  FAULT(kSegmentsIgnored, kBoth, "segments are ignored")                                          \
  FAULT(kDropoutBeforeSum, kForward, "dropped weights are missing in the denominator")            \
  FAULT(kDropoutUnscaled, kForward, "kept weights are not divided by 1 - p")                      \
  FAULT(kDropoutMissing, kBoth, "dropout is left out; backward: the mask is not applied")         \
  FAULT(kDropoutNumber, kBoth, "weights are numbered with kv_len and q_len exchanged")            \
  FAULT(kDropoutOfHeadZero, kBoth, "all heads draw the numbers of head 0")                        \
  FAULT(kDropoutSeedLow, kBoth, "the upper half of the seed is lost")                             \
  FAULT(kSplitsUnscaled, kForward, "splits are added without their maxima")                       \
  FAULT(kSplitsAveraged, kForward, "splits are averaged without their sums")                      \
  FAULT(kEmptySplitIsNan, kForward, "merging two empty splits gives -inf - -inf")                 \
  FAULT(kEmptySplitAtZero, kForward, "an empty split has maximum 0")                              \
  FAULT(kLseBase2, kBoth, "log_sum_exp in base 2")                                                \
  FAULT(kLseWithoutMaximum, kForward, "log_sum_exp without the maximum")                          \
  FAULT(kLseOfNothing, kForward, "+inf for rows that see nothing, as FlashAttention-2 has it")    \
  FAULT(kLseFirstTile, kForward, "log_sum_exp of the sum before the last tile")                   \
  FAULT(kOutputBf16, kForward, "the output accumulator is kept in bf16")                          \
  FAULT(kOutputInStorage, kForward, "the output accumulator is kept in the storage type")         \
  FAULT(kOutputTruncated, kForward, "the output is rounded towards 0")                            \
  FAULT(kWeightsInStorage, kForward, "weights are rounded to the storage type")                   \
  FAULT(kWeightsBf16, kForward, "weights are rounded to bf16")                                    \
  FAULT(kScoresF16, kForward, "scores are rounded to f16")                                        \
  FAULT(kQueryInStorage, kForward, "scaled queries are rounded to the storage type")              \
  FAULT(kOutputRoundedTwice, kForward, "the output goes through bf16 on its way to f16")          \
  FAULT(kCoarseExp, kForward, "exp is good for 12 bits")                                          \
  FAULT(kNormalizedAnyway, kForward, "normalize_output = false is ignored")                       \
  FAULT(kOffsetWraps, kBoth, "element offsets wrap at 2^12, as 32-bit ones at 2^32")              \
  FAULT(kValueByKeyStrides, kBoth, "values are read by the strides of keys")                      \
  FAULT(kKeyByValueStrides, kBoth, "keys are read by the strides of values")                      \
  FAULT(kLastColumnNotWritten, kForward, "the tail of value_dim is not stored")                   \
  FAULT(kHiddenTimesZero, kForward, "hidden values are multiplied by 0, and NaN is no 0")         \
  FAULT(kDeltaMissing, kBackward, "delta is left out")                                            \
  FAULT(kDeltaOutputStrides, kBackward, "output_gradient is read by the strides of output")       \
  FAULT(kDeltaDropped, kBackward, "dropout is applied to delta, too")                             \
  FAULT(kPeakIgnored, kBackward, "sums that are not normalized lose delta by weight")             \
  FAULT(kSlopeOfCapMissing, kBackward, "the derivative of the cap is left out")                   \
  FAULT(kSlopeOfCapLinear, kBackward, "1 - tanh in place of 1 - tanh^2")                          \
  FAULT(kKeyGradientOneHead, kBackward, "dk of the last head of a group overwrites the others")   \
  FAULT(kValueGradientOneHead, kBackward, "dv of the last head of a group overwrites the others") \
  FAULT(kKeyGradientUnscaled, kBackward, "dk without the scale")                                  \
  FAULT(kQueryGradientUnscaled, kBackward, "dq without the scale")                                \
  FAULT(kQueryGradientLastTile, kBackward, "dq holds the last tile of keys only")                 \
  FAULT(kBiasGradientNotSummed, kBackward, "dbias: the last of a broadcast axis overwrites")      \
  FAULT(kBiasGradientScaled, kBackward, "dbias with the scale")                                   \
  FAULT(kBiasGradientAfterCap, kBackward, "dbias as if the bias came after the cap")              \
  FAULT(kSinkGradientSign, kBackward, "dsink without its minus")                                  \
  FAULT(kSinkGradientOneBatch, kBackward, "dsink of the last batch only")                         \
  FAULT(kDropoutNotInDv, kBackward, "dv of undropped weights")                                    \
  FAULT(kDropoutNotInDp, kBackward, "dp of undropped weights")                                    \
  FAULT(kValueGradientOfScores, kBackward, "dv of ds in place of p")                              \
  FAULT(kEmptyRowIsNan, kBackward, "exp(s - -inf) of rows that see nothing")                      \
  FAULT(kHiddenDelta, kBackward, "rows that see nothing count for the gradients of sinks")        \
  FAULT(kHiddenKeyTimesZero, kBackward, "hidden keys are multiplied by 0, and NaN is no 0")       \
  FAULT(kLastRowMissing, kBackward, "dk and dv miss the last row")                                \
  FAULT(kScoreGradientBf16, kBackward, "ds is rounded to bf16")                                   \
  FAULT(kKeyGradientInStorage, kBackward, "dk is summed up in the storage type")                  \
  FAULT(kHiddenGradientNotWritten, kBackward, "gradients of keys that nobody sees are not stored")

// EQUIVALENT(name, direction, why): changes that only reorder roundings and must pass.
#define ATTENTION_EQUIVALENTS(EQUIVALENT)                                             \
  EQUIVALENT(kSmallTiles, kForward, "tiles of 5 keys round in another order")         \
  EQUIVALENT(kReciprocal, kForward, "multiplying by 1 / sum costs one rounding more") \
  EQUIVALENT(kSplitsBackwards, kForward, "splits merge in any order")                 \
  EQUIVALENT(kScaleOnQuery, kForward, "scaling a float query in place of the score")  \
  EQUIVALENT(kRowsBackwards, kBackward, "rows are summed up from the last")

enum class Fault : std::uint8_t {
  kNone,
#define FAULT(name, direction, why) name,
  ATTENTION_FAULTS(FAULT) ATTENTION_EQUIVALENTS(FAULT)
#undef FAULT
};

enum class Direction : std::uint8_t { kForward, kBackward, kBoth };

struct FaultInfo {
  Fault fault;
  Direction direction;
  std::string name, why;
};

#define FAULT(name, direction, why) {Fault::name, Direction::direction, #name, why},
inline std::vector<FaultInfo> attention_faults() { return {ATTENTION_FAULTS(FAULT)}; }
inline std::vector<FaultInfo> attention_equivalents() { return {ATTENTION_EQUIVALENTS(FAULT)}; }
#undef FAULT

}  // namespace tessera::testing
