// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// Each is the work of a room.
#define WAY(name) Way name##_way(const CellSlots& slots);
#include "operations/cells_core/ways.def"
#undef WAY

std::vector<Way> cells_ways(const CellSlots& slots) {
  return {
#define WAY(name) name##_way(slots),
#include "operations/cells_core/ways.def"
#undef WAY
  };
}

}  // namespace tessera::operations::cells
