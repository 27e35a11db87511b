// SPDX-License-Identifier: Apache-2.0
// Which keys a query may attend to, kept as rules and not as a matrix: kernels evaluate the rules,
// only references materialise them.
//
// Query i of batch b and head h sees key j when
//
//   base     = causal AND window AND chunks AND dense
//   pattern  = base                      without token types
//              base OR  same_type        kUnion
//              base AND same_type        kIntersect
//              same_type                 kReplace
//   visible  = pattern AND same_segment AND i < q_lengths[b] AND j < kv_lengths[b]
//
//   causal:        j <= i + offset
//   window:        i + offset - left <= j <= i + offset + right
//   chunks:        (i + q_start) div size == (j + kv_start) div size  AND  j <= i + offset
//   dense:         dense[b | 0, h | 0, i, j] != 0
//   same_segment:  q_segment[b, i] == kv_segment[b, j], both >= 0
//   same_type:     q_type[b, i] == kv_type[b, j], and not 0 unless the zero policy is kNone
//
// A rule that was not set is true. So token types can make keys visible that the base hides, but
// never padding and never a key of another segment: segments and lengths come last. The order in
// which rules are set does not matter; setting a rule again replaces it.
//
// Sizes are checked, and everything here throws InvalidArgument with a sentence that names the
// argument and its value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/export.hpp"

namespace tessera {

// Where the diagonal of a causal mask or window starts when q_len != kv_len.
enum class CausalAlignment : std::uint8_t { kTopLeft, kBottomRight };

// The offset of a rule in batch b: offsets[b], or offsets[0] if there is only one, plus 0 for
// top-left alignment or kv_length(b) - q_length(b) for bottom-right. Lengths that are set later
// count too.
struct Diagonal {
  CausalAlignment alignment = CausalAlignment::kTopLeft;
  std::vector<std::int64_t> offsets{0};  // 1 or batch values
  friend bool operator==(const Diagonal&, const Diagonal&) = default;
};

// One number per query [batch, q_len] and one per key [batch, kv_len].
struct QueryKeyIds {
  std::vector<std::int32_t> q{};
  std::vector<std::int32_t> kv{};
  friend bool operator==(const QueryKeyIds&, const QueryKeyIds&) = default;
};

// A materialised mask [batch, heads, q_len, kv_len], row-major; anything but 0 is visible.
struct DenseMask {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::vector<std::uint8_t> values{};
  friend bool operator==(const DenseMask&, const DenseMask&) = default;
};

enum class BlockVisibility : std::uint8_t { kNone, kSome, kAll };

// What is visible per block of block_q x block_k, [batch, heads, q_blocks, kv_blocks]. Blocks at
// the edge count only the rows and keys that exist.
struct BlockLayout {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t q_blocks = 0;
  std::int64_t kv_blocks = 0;
  std::vector<BlockVisibility> blocks{};
  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

// The keys [first, last); {0, 0} is none.
struct KeyInterval {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const KeyInterval&, const KeyInterval&) = default;
};

// low <= j - i <= high.
struct DiagonalBand {
  std::int64_t low = 0;
  std::int64_t high = 0;
  friend bool operator==(const DiagonalBand&, const DiagonalBand&) = default;
};

enum class TokenTypeCombine : std::uint8_t { kUnion, kIntersect, kReplace };

// On which side tokens of type 0 (text) match nothing. Types only match when they are equal, so
// kQuery, kKey and kBoth give the same mask.
enum class ZeroTypePolicy : std::uint8_t { kQuery, kKey, kBoth, kNone };

// An immutable value. Every with_...() returns a new mask and leaves this one as it is; the dense
// part is shared between copies.
class TESSERA_API MaskSpec {
 public:
  struct Window {
    std::int64_t left = 0;
    std::int64_t right = 0;
    Diagonal diagonal{};
    friend bool operator==(const Window&, const Window&) = default;
  };
  struct Chunks {
    std::int64_t size = 1;
    Diagonal diagonal{};
    std::vector<std::int64_t> q_starts{0};  // 1 or batch values; slice() moves them
    std::vector<std::int64_t> kv_starts{0};
    friend bool operator==(const Chunks&, const Chunks&) = default;
  };
  struct TokenTypes {
    QueryKeyIds ids{};
    TokenTypeCombine combine = TokenTypeCombine::kUnion;
    ZeroTypePolicy zero_policy = ZeroTypePolicy::kQuery;
    friend bool operator==(const TokenTypes&, const TokenTypes&) = default;
  };

  // Everything is visible. heads = 1 stands for all heads. Sizes are not negative, heads at
  // least 1.
  static MaskSpec full(std::int64_t batch, std::int64_t q_len, std::int64_t kv_len,
                       std::int64_t heads = 1);
  // Packed documents: ids q [batch, q_len] and kv [batch, kv_len], or one [batch, len] for both.
  static MaskSpec from_segments(std::int64_t batch, QueryKeyIds ids);
  static MaskSpec from_segments(std::int64_t batch, const std::vector<std::int32_t>& ids);
  // 1 = a token, 0 = padding, [batch, len] for queries and keys: becomes segments 0 and -1.
  static MaskSpec from_padding(std::int64_t batch, std::span<const std::uint8_t> mask);
  static MaskSpec from_dense(DenseMask mask);
  // A dense mask that hides every element with probability sparsity (0 to 1). Element n is visible
  // when the n-th number of SplitMix64 started at the seed, as a fraction in [0, 1), is below
  // 1 - sparsity; so it is the same on every platform.
  static MaskSpec random(std::int64_t batch, std::int64_t q_len, std::int64_t kv_len,
                         double sparsity = 0.5, std::uint64_t seed = 0);

  MaskSpec with_causal(Diagonal diagonal = {}) const;
  // left and right are inclusive and not negative: (0, 0) is the diagonal alone.
  MaskSpec with_sliding_window(std::int64_t left, std::int64_t right, Diagonal diagonal = {}) const;
  // Causal inside chunks of `size` > 0 positions. Segments stay as they are.
  MaskSpec with_chunks(std::int64_t size, Diagonal diagonal = {}) const;
  MaskSpec with_segments(QueryKeyIds ids) const;
  // Positions in the document, for rotary embeddings. They do not change what is visible: causal
  // rules, windows and chunks count rows and keys.
  MaskSpec with_positions(QueryKeyIds positions) const;
  MaskSpec with_q_lengths(std::vector<std::int64_t> lengths) const;   // [batch], 0 to q_len
  MaskSpec with_kv_lengths(std::vector<std::int64_t> lengths) const;  // [batch], 0 to kv_len
  // [1 | batch, 1 | heads, q_len, kv_len]
  MaskSpec with_dense(DenseMask mask) const;
  MaskSpec with_token_types(QueryKeyIds types, TokenTypeCombine combine = TokenTypeCombine::kUnion,
                            ZeroTypePolicy zero_policy = ZeroTypePolicy::kQuery) const;

  // The rectangle [q_starts[b], + q_len) x [kv_starts[b], + kv_len) as a mask of its own; 1 or
  // batch starts. Visibility and positions are those of the original; alignments become offsets,
  // so lengths that are set on the slice do not move them.
  MaskSpec slice(const std::vector<std::int64_t>& q_starts, std::int64_t q_len,
                 const std::vector<std::int64_t>& kv_starts, std::int64_t kv_len) const;
  // A decoding step: the q_len rows that end at kv_length(b), moved into the mask where they leave
  // it.
  MaskSpec last_rows(std::int64_t q_len) const;
  // The kv_len keys that end at kv_length(b), moved likewise.
  MaskSpec last_keys(std::int64_t kv_len) const;

  std::int64_t batch() const { return batch_; }
  std::int64_t heads() const { return heads_; }
  std::int64_t q_len() const { return q_len_; }
  std::int64_t kv_len() const { return kv_len_; }
  const std::optional<Diagonal>& causal() const { return causal_; }
  const std::optional<Window>& window() const { return window_; }
  const std::optional<Chunks>& chunks() const { return chunks_; }
  const std::optional<QueryKeyIds>& segments() const { return segments_; }
  const std::optional<TokenTypes>& token_types() const { return token_types_; }
  const DenseMask* dense() const { return dense_.get(); }  // null = none; values are 0 and 1
  std::int64_t q_length(std::int64_t b) const;             // q_len without q_lengths
  std::int64_t kv_length(std::int64_t b) const;
  // Causal rule, window and the diagonal of the chunks as one, cut to [-q_len, kv_len].
  DiagonalBand band(std::int64_t b) const;

  // 1 where segments and lengths leave a query [batch, q_len] or a key [batch, kv_len], else 0.
  std::vector<std::uint8_t> q_mask() const;
  std::vector<std::uint8_t> kv_mask() const;
  // Those that were set, or the index in each run of equal segment ids (of all rows without
  // segments), with padding -1 in q and INT32_MAX in kv.
  QueryKeyIds positions() const;
  // Queries and keys are the same tokens as far as is known: equal segment ids, or, without
  // segments, q_len == kv_len.
  bool is_self_attention() const;

  // h is ignored when heads is 1.
  bool visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
  // The smallest interval with all keys that row i sees in any head. Without segments, token types
  // and dense part this is a formula; with them, keys are visited from both ends.
  KeyInterval bounds(std::int64_t b, std::int64_t i) const;
  DenseMask to_dense() const;  // values 0 and 1
  // To be added to the scores: 0 where visible, else -infinity, so that no finite score brings a
  // hidden key back, and a row that sees nothing is told apart from one that sees everything.
  // [batch, heads, q_len, kv_len].
  std::vector<float> to_bias() const;
  // Blocks that formulas or the ranges of ids decide take constant time; elements are visited only
  // in blocks where segments, token types or a dense part leave it open.
  BlockLayout to_block_layout(std::int64_t block_q, std::int64_t block_k) const;
  // The block layout of one head as text: '.' none, '+' some, '#' all.
  std::string picture(std::int64_t block = 32, std::int64_t b = 0, std::int64_t h = 0) const;

  // The same rules with the same values. Different rules may still show the same keys: compare
  // to_dense() for that.
  friend TESSERA_API bool operator==(const MaskSpec& a, const MaskSpec& b);

 private:
  MaskSpec(std::int64_t batch, std::int64_t heads, std::int64_t q_len, std::int64_t kv_len);
  std::int64_t alignment_shift(const Diagonal& diagonal, std::int64_t b) const;

  std::int64_t batch_;
  std::int64_t heads_;
  std::int64_t q_len_;
  std::int64_t kv_len_;
  std::optional<Diagonal> causal_{};
  std::optional<Window> window_{};
  std::optional<Chunks> chunks_{};
  std::optional<QueryKeyIds> segments_{};
  std::optional<QueryKeyIds> positions_{};
  std::optional<TokenTypes> token_types_{};
  std::optional<std::vector<std::int64_t>> q_lengths_{};
  std::optional<std::vector<std::int64_t>> kv_lengths_{};
  std::shared_ptr<const DenseMask> dense_{};
};

// Rows with equal patterns get equal ids, and columns likewise, numbered from 0 by first occurrence
// and on each side for itself; a row or column without a visible element gets -1. Lossy: only
// where is_block_diagonal() holds do the ids describe the mask. (A causal mask gives 0, 1, 2, ...
// on both sides, which is the diagonal.) per_head: q [batch, heads, q_len], kv [batch, heads,
// kv_len]; else the heads must be equal, and the result has no head axis.
TESSERA_API QueryKeyIds mask_to_segment_ids(const DenseMask& mask, bool per_head = false);

// mask[b, 0, i, j] = q[b, i] == kv[b, j], both >= 0.
TESSERA_API DenseMask segment_ids_to_mask(std::int64_t batch, const QueryKeyIds& ids);

// 1 where the id is >= 0.
TESSERA_API std::vector<std::uint8_t> segment_valid_mask(std::span<const std::int32_t> ids);

// ids [batch, len]. The index in each run of equal ids, from 0; `padding` where the id is negative.
TESSERA_API std::vector<std::int32_t> positions_from_segments(std::int64_t batch,
                                                              std::span<const std::int32_t> ids,
                                                              std::int32_t padding = -1);

// ids [batch, len]. The segments that chunks of `chunk_size` positions make: i div chunk_size + 1,
// and -1 where the id is negative.
TESSERA_API std::vector<std::int32_t> chunk_segment_ids(std::int64_t batch,
                                                        std::span<const std::int32_t> ids,
                                                        std::int64_t chunk_size);

// Segment ids describe the mask without loss: segment_ids_to_mask(mask_to_segment_ids(mask)) is the
// mask, in every head.
TESSERA_API bool is_block_diagonal(const DenseMask& mask);

}  // namespace tessera
