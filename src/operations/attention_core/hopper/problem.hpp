// SPDX-License-Identifier: Apache-2.0
// What the variants for Hopper ask of a call.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

// Tensors of heads that run at the same time, of the 50 to 60 MB of cache.
inline constexpr std::int64_t kHopperCachedBytes = std::int64_t{48} << 20;
// Work-groups that stay; each takes one piece of work after the other.
inline constexpr const char* kHopperGroups = "GROUPS";

// One for each multiprocessor, where the driver tells how many there are.
void set_groups(std::vector<Config>& configs, const DeviceProfile& profile);

inline std::uint32_t padded_columns(std::uint32_t columns) { return (columns + 63) / 64 * 64; }

struct Span {
  std::int64_t first = 0, end = 0;
  std::int64_t count() const { return end - first; }
};
// The rows that see some key, and the keys that some row sees.
Span seeing_rows(const AttentionProblem& call);
Span seen_keys(const AttentionProblem& call);

// Copies of tiles go through maps, whose strides are multiples of 16 bytes.
Refusal rejects_rows(const Problem& problem, std::size_t slot, const TensorSpec& rows);
Refusal rejects_layout(const Problem& problem, std::initializer_list<std::size_t> slots);
Refusal rejects_local_bytes(std::uint32_t bytes);
Refusal rejects_policies(const Problem& problem);

}  // namespace tessera::operations::attention
