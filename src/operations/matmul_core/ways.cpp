// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

// Each is the work of a room.
#define WAY(name) Way name##_way(const MatmulSlots& slots);
#include "operations/matmul_core/ways.def"
#undef WAY
Way codes_way(const MatmulSlots& slots);  // forward only

std::vector<Way> matmul_ways(const MatmulSlots& slots) {
#define WAY(name) name##_way(slots),
  std::vector<Way> ways{
#include "operations/matmul_core/ways.def"
  };
  if (slots.backward()) {
    std::erase_if(ways, [](const Way& way) {
      return std::ranges::all_of(way.variant.dtypes, is_eight_bits);
    });
  } else {
    ways.insert(ways.begin(), codes_way(slots));
  }
  return ways;
}

}  // namespace tessera::operations::matmul
