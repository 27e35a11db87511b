// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Each is the work of a room.
#define WAY(name) std::optional<Way> name##_way(const RecurrenceSlots& slots);
#include "operations/recurrence_core/ways.def"
#undef WAY

std::vector<Way> recurrence_ways(const RecurrenceSlots& slots) {
  std::vector<Way> ways;
#define WAY(name) \
  if (std::optional<Way> way = name##_way(slots)) ways.push_back(std::move(*way));
#include "operations/recurrence_core/ways.def"
#undef WAY
  return ways;
}

}  // namespace tessera::operations::recurrence
