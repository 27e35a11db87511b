// SPDX-License-Identifier: Apache-2.0
// Where each operation of the family keeps its operands.
#pragma once

#include <cstddef>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

// Slots of one operation; kNoOperand where it does not have such an operand.
struct AttentionSlots {
  std::size_t query = kNoOperand, key = kNoOperand, value = kNoOperand, output = kNoOperand,
              log_sum_exp = kNoOperand, weights = kNoOperand;
  std::size_t mask = kNoOperand, bias = kNoOperand, alibi_slopes = kNoOperand, sinks = kNoOperand;
  std::size_t cum_seqlens_q = kNoOperand, cum_seqlens_k = kNoOperand, q_lengths = kNoOperand,
              kv_lengths = kNoOperand;
  std::size_t q_segments = kNoOperand, kv_segments = kNoOperand, q_positions = kNoOperand,
              kv_positions = kNoOperand;
  // The keys of each sequence of one query, and what is added to the logits of the first of all.
  std::size_t sequence_start = kNoOperand, sequence_end = kNoOperand, position_bias = kNoOperand;
  // Of keys in pages; `key` and `value` are then pools, and the same one where heads are combined.
  std::size_t block_tables = kNoOperand, context_lens = kNoOperand, query_start_loc = kNoOperand,
              num_seqs = kNoOperand, distribution = kNoOperand;
  // What codes of keys and values times them mean; the same one where heads are combined.
  std::size_t key_scale = kNoOperand, value_scale = kNoOperand;
  // Values and their scales in calls that keep them apart from keys, where heads may be combined.
  std::size_t value_pages = kNoOperand, value_pages_scale = kNoOperand;
  std::size_t output_gradient = kNoOperand, query_gradient = kNoOperand, key_gradient = kNoOperand,
              value_gradient = kNoOperand, bias_gradient = kNoOperand, sinks_gradient = kNoOperand;
};

// The slots of an operation whose operands have the family's names.
AttentionSlots attention_slots(const std::vector<Operand>& operands);

// Those of calls that have value_pages.
AttentionSlots with_pools_apart(AttentionSlots slots);

}  // namespace tessera::operations::attention
