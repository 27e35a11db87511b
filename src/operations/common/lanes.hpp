// SPDX-License-Identifier: Apache-2.0
// Kernels that move rows, LANES items for each row at a time, in GROUPS work-groups at most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

// Work-groups of `items` items, a row shared by the lanes that its vectors fill divided by `parts`,
// and `groups` work-groups for each compute unit.
struct LaneCut {
  std::uint32_t items, parts, groups;
};

// Configurations for `rows` rows of `vectors` vectors. PoCL runs the items of a group one after the
// other, and moves a row with one of them.
std::vector<Config> lane_space(std::int64_t rows, std::int64_t vectors, std::uint32_t most_lanes,
                               std::span<const LaneCut> cuts, const DeviceProfile& profile);
Dim3 lane_groups(std::int64_t rows, const Config& config);
Refusal rejects_lanes(const Config& config);

}  // namespace tessera::operations
