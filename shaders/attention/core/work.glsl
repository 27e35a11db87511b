// SPDX-License-Identifier: Apache-2.0
// How a kernel takes an item of the work list (operations/attention_core/core/work.h).
#ifndef TESSERA_ATTENTION_WORK_GLSL
#define TESSERA_ATTENTION_WORK_GLSL
#include "operations/attention_core/core/work.h"

// Rows [first, end) of a kv head, as a tile holds them, and whose they are.
struct Tile {
  uint first, end, sequence;
};

// Tile `number` of the list; without rows beyond its last one.
Tile listed_tile(uint list, uint number) {
  if (number >= uint(ROW_ENTRY(list).x)) return Tile(0u, 0u, 0u);
  const ivec4 item = ROW_ENTRY(list + 1u + 2u * number);
  return Tile(uint(item.y), uint(item.y + item.z), uint(item.x));
}

#endif  // TESSERA_ATTENTION_WORK_GLSL
