// SPDX-License-Identifier: Apache-2.0
// What the passes of the variant "tile" share.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::int64_t columns_of(const Config& config);  // of a work-group
std::vector<Define> tile_axes(const Problem& problem, const DeviceProfile& profile);

// Scratch of a backward call: where each part begins, in vectors of four floats.
struct BackwardScratch {
  std::uint64_t kept = 0, inner = 0, dquery_shares = 0, dkey_shares = 0, decay_shares = 0;
  std::uint64_t sums = 0, end = 0;
  std::uint64_t bytes() const { return 16 * end; }
};
BackwardScratch scratch_of(const Problem& problem, const Config& config);

std::vector<Pass> backward_passes(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
