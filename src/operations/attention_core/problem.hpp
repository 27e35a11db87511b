// SPDX-License-Identifier: Apache-2.0
// An attention call after validation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operations/attention_core/slots.hpp"
#include "operations/common/codes.hpp"
#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// Positions are no farther apart.
inline constexpr std::int64_t kMostDistance = (std::int64_t{1} << 32) - 1;

// Keys in the pages of a pool, which a table lists for each sequence.
struct PagedKeys {
  std::int64_t size = 0;  // tokens of a page; 0 = keys lie one after the other
  std::int64_t pages = 0;
  std::int64_t sequences = 0;
  std::int64_t per_sequence = 0;   // pages that the table has room for
  std::int64_t expected_keys = 0;  // of the longest sequence, for the choice of splits
};

struct AttentionProblem {
  AttentionSlots slots{};
  PagedKeys paged{};
  DType stored = DType::kF32;  // of keys and values
  std::int64_t batch = 0, q_len = 0, kv_len = 0, heads = 0, kv_heads = 0, head_dim = 0,
               value_dim = 0;
  double scale = 1;
  double soft_cap = 0;  // 0 = none
  bool causal = false, bottom_right = false;
  std::int64_t window_left = kMostDistance, window_right = kMostDistance;  // that = no bound
  std::int64_t chunk = 0;                                                  // 0 = none
  bool rowless = false;        // one query of each sequence, [batch, heads, dim]
  bool packed = false;         // the sequences of cum_seqlens lie in one batch
  std::int64_t sequences = 0;  // of cum_seqlens; 0 = none
  double dropout = 0;          // probability
  std::uint64_t seed = 0;
  bool normalize = true;
  bool bias_after_cap = false;
  std::int64_t splits = 0;     // of the keys; 0 = chosen
  std::uint32_t features = 0;  // POLICY_...: what this call has beyond a band and a cap
  bool policies = false;       // needs the table of rows
  // Of key - row, the alignment in it where it is known; not of positions.
  std::int64_t band_low = 0, band_high = 0;

  bool is_paged() const { return paged.size > 0; }  // kv_len is then what one sequence has room for
  // Keys and values by turns in one pool; or in pools of their own, by heads and then tokens where
  // queries have no axis of rows.
  bool is_combined() const { return slots.key == slots.value; }
  bool has_heads_first() const { return !is_combined() && !packed; }
  bool has_codes() const { return slots.key_scale != kNoOperand && is_code(stored); }
  std::int64_t group() const { return heads / kv_heads; }
  // The keys [first, last) that row i sees where only the band hides any.
  std::int64_t first_key(std::int64_t row) const {
    return std::clamp<std::int64_t>(row + band_low, 0, kv_len);
  }
  std::int64_t last_key(std::int64_t row) const {
    return std::clamp<std::int64_t>(row + band_high + 1, 0, kv_len);
  }
  // (row, key) pairs of one head in the band and the chunks; lengths and masks may hide more.
  double visible_pairs() const;
};

// The same elements with axes of size 1 and stride 0 in front: operands that have no batch axis, or
// sinks that all heads share.
TensorSpec with_rank(TensorSpec spec, std::size_t rank);
// Rows of a call, packed or not, as [batch, rows, heads, dim].
inline TensorSpec with_batch(const TensorSpec& spec) { return with_rank(spec, 4); }
// Queries and outputs as [batch, rows, heads, dim], keys and values too, or those of a pool as
// [pages, tokens of a page, kv_heads, dim].
TensorSpec query_rows(const Problem& problem);
TensorSpec key_rows(const Problem& problem);
TensorSpec value_rows(const Problem& problem);
TensorSpec output_rows(const Problem& problem);
// Scales in the order of the rows that they are for, without their features: stride 0 along axes
// that share one.
TensorSpec key_scales(const Problem& problem);
TensorSpec value_scales(const Problem& problem);
// A mask or a bias, also [batch, rows, keys] or [batch, keys], as [batch, heads, rows, keys] with
// stride 0 along axes of size 1.
TensorSpec with_pair_axes(TensorSpec spec);

void validate_attention(Problem& problem);  // every operation of the family but backward
void validate_paged_attention(Problem& problem);
void validate_ragged_decode(Problem& problem);
void validate_attention_backward(Problem& problem);
// Operation::raises of keys in pages, in the order of PAGES_... in pages_args.h.
std::vector<Raised> raises_of_pages(const Problem& problem, std::span<HostTensor> tensors);
// The same of sequence_start and sequence_end, in the order of SPANS_... in spans_args.h.
std::vector<Raised> raises_of_spans(const Problem& problem, std::span<HostTensor> tensors);
void reference_attention(const Problem& problem, std::span<HostTensor> tensors);
void reference_attention_backward(const Problem& problem, std::span<HostTensor> tensors);
// Of an operation that has its operands and options.
Workload forward_workload(const Operation& operation);
Workload paged_workload(const Operation& operation);
Workload ragged_decode_workload(const Operation& operation);
Workload backward_workload(const Operation& operation);
std::vector<Way> forward_ways(const AttentionSlots& slots);
std::vector<Way> paged_ways(const AttentionSlots& slots);
std::vector<Way> backward_ways(const AttentionSlots& slots);

}  // namespace tessera::operations::attention
