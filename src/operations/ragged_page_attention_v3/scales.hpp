// SPDX-License-Identifier: Apache-2.0
// q_scale, k_scale and v_scale of ragged_page_attention_v3: what is in the scratch buffer for them,
// and the passes that write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

struct FusedScales {
  std::optional<double> query, key, value;
  // In place of kv_scale; those of a cache of floats change logits and outputs.
  bool of_codes = false;

  double of_logits() const { return query.value_or(1) * (of_codes ? 1 : key.value_or(1)); }
  double of_outputs() const { return of_codes ? 1 : value.value_or(1); }
};
FusedScales scales_of(const Problem& problem);  // refuses those that are not positive

// In the scratch buffer: the queries in the cache's type, and the scales of codes as
// [1, 1, 2 kv_heads], of which keys have the first and values the second.
Place scaled_queries(const Problem& problem);
Place scale_pairs(const Problem& problem);
std::uint64_t scaled_bytes(const Problem& problem);
// Rows to scale that are out of the passes' reach; what is not scaled is up to the calls.
Refusal rejects_far_scaled(const Problem& problem, const DeviceProfile& profile);

// What passes leave there, as a definition.
std::vector<std::byte> scaled_reference(const Problem& problem, std::span<HostTensor> tensors);
void scale_outputs(const Problem& problem, std::span<HostTensor> tensors);

// "begin", which writes what is in the scratch buffer, and "scaled_outputs"; they launch nothing
// where there is no such scale.
std::vector<Pass> fused_passes();

}  // namespace tessera::operations::attention
