// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

// Each is the work of a room.
#define WAY(name) Way name##_way(const MatmulSlots& slots);
#include "operations/matmul_core/ways.def"
#undef WAY

std::vector<Way> matmul_ways(const MatmulSlots& slots) {
#define WAY(name) name##_way(slots),
  return {
#include "operations/matmul_core/ways.def"
  };
}

}  // namespace tessera::operations::matmul
