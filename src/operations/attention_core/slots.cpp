// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/slots.hpp"

#include <string_view>
#include <utility>

namespace tessera::operations::attention {

AttentionSlots attention_slots(const std::vector<Operand>& operands) {
  using Member = std::size_t AttentionSlots::*;
  static constexpr std::pair<std::string_view, Member> kNames[] = {
      {"query", &AttentionSlots::query},
      {"key", &AttentionSlots::key},
      {"value", &AttentionSlots::value},
      {"queries", &AttentionSlots::query},
      {"key_cache", &AttentionSlots::key},
      {"value_cache", &AttentionSlots::value},
      {"kv_pages", &AttentionSlots::key},
      {"kv_pages", &AttentionSlots::value},
      {"output", &AttentionSlots::output},
      {"log_sum_exp", &AttentionSlots::log_sum_exp},
      {"weights", &AttentionSlots::weights},
      {"attention_mask", &AttentionSlots::mask},
      {"bias", &AttentionSlots::bias},
      {"alibi_slopes", &AttentionSlots::alibi_slopes},
      {"softmax_aux", &AttentionSlots::sinks},
      {"cum_seqlens_q", &AttentionSlots::cum_seqlens_q},
      {"cum_seqlens_k", &AttentionSlots::cum_seqlens_k},
      {"q_lengths", &AttentionSlots::q_lengths},
      {"kv_lengths", &AttentionSlots::kv_lengths},
      {"q_segment_ids", &AttentionSlots::q_segments},
      {"kv_segment_ids", &AttentionSlots::kv_segments},
      {"q_positions", &AttentionSlots::q_positions},
      {"kv_positions", &AttentionSlots::kv_positions},
      {"position_bias", &AttentionSlots::position_bias},
      {"sequence_start", &AttentionSlots::sequence_start},
      {"sequence_end", &AttentionSlots::sequence_end},
      {"block_tables", &AttentionSlots::block_tables},
      {"context_lens", &AttentionSlots::context_lens},
      {"query_start_loc", &AttentionSlots::query_start_loc},
      {"num_seqs", &AttentionSlots::num_seqs},
      {"distribution", &AttentionSlots::distribution},
      {"key_scale", &AttentionSlots::key_scale},
      {"value_scale", &AttentionSlots::value_scale},
      {"kv_scale", &AttentionSlots::key_scale},
      {"kv_scale", &AttentionSlots::value_scale},
      {"value_pages", &AttentionSlots::value_pages},
      {"output_gradient", &AttentionSlots::output_gradient},
      {"query_gradient", &AttentionSlots::query_gradient},
      {"key_gradient", &AttentionSlots::key_gradient},
      {"value_gradient", &AttentionSlots::value_gradient},
      {"bias_gradient", &AttentionSlots::bias_gradient},
      {"softmax_aux_gradient", &AttentionSlots::sinks_gradient},
  };
  AttentionSlots slots;
  for (std::size_t slot = 0; slot < operands.size(); ++slot) {
    for (const auto& [name, member] : kNames) {
      if (operands[slot].name == name) slots.*member = slot;
    }
  }
  if (slots.value_pages != kNoOperand) {
    slots.value_pages_scale = slots.value_scale;
    slots.value_scale = slots.key_scale;
  }
  return slots;
}

AttentionSlots with_pools_apart(AttentionSlots slots) {
  slots.value = slots.value_pages;
  slots.value_scale = slots.value_pages_scale;
  return slots;
}

}  // namespace tessera::operations::attention
