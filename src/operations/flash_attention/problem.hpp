// SPDX-License-Identifier: Apache-2.0
// A flash attention call after validation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

enum FlashAttentionSlot : std::size_t { kQuery, kKey, kValue, kOutput, kLogSumExp };

struct FlashAttentionProblem {
  std::int64_t batch = 0, q_len = 0, kv_len = 0, heads = 0, kv_heads = 0, head_dim = 0,
               value_dim = 0;
  double scale = 1;
  double soft_cap = 0;                       // 0 = none
  std::int64_t band_low = 0, band_high = 0;  // row i sees key j when band_low <= j - i <= band_high

  std::int64_t group() const { return heads / kv_heads; }
  // The keys [first, last) that row i sees.
  std::int64_t first_key(std::int64_t row) const {
    return std::max<std::int64_t>(0, row + band_low);
  }
  std::int64_t last_key(std::int64_t row) const { return std::min(kv_len, row + band_high + 1); }
  // Visible (row, key) pairs of one head.
  double visible_pairs() const;
};

std::vector<Operation> flash_attention();
void validate_flash_attention(Problem& problem);
void reference_flash_attention(const Problem& problem, std::span<HostTensor> tensors);
Workload flash_attention_workload();
std::vector<Variant> flash_attention_variants();
std::vector<Rule> flash_attention_rules();

}  // namespace tessera::operations
