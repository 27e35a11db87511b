// SPDX-License-Identifier: Apache-2.0
// What both directions on processors share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::uint32_t cpu_key_block(const Problem& problem);  // key dims that an item has room for
std::int64_t cpu_columns(const Config& config);       // that an item owns
// PANELS of those that give every core something to do, wide ones first, then the others.
std::vector<std::uint32_t> cpu_panels(const Problem& problem, const DeviceProfile& profile);

std::optional<Way> cpu_backward_way(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
