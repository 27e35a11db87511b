// SPDX-License-Identifier: Apache-2.0
// How a kernel takes an item of the work list (operations/attention_core/core/work.h).
#ifndef TESSERA_ATTENTION_WORK_GLSL
#define TESSERA_ATTENTION_WORK_GLSL
#include "operations/attention_core/core/work.h"

// Rows [first, end) of a kv head, as a tile holds them, and whose they are; where its item of the list is.
struct Tile {
  uint first, end, sequence, entry;
};

// Tile `number` of the list; without rows beyond its last one.
Tile listed_tile(uint list, uint number) {
  if (number >= uint(ROW_ENTRY(list).x)) return Tile(0u, 0u, 0u, 0u);
  const uint entry = list + 1u + 2u * number;
  const ivec4 item = ROW_ENTRY(entry);
  return Tile(uint(item.y), uint(item.y + item.z), uint(item.x), entry);
}

// {first, end, common first, common end} of the keys of a tile; none of one without rows.
ivec4 listed_keys(Tile tile) {
  if (tile.first >= tile.end) return ivec4(0);
  const int first = ROW_ENTRY(tile.entry).w;
  const ivec4 keys = ROW_ENTRY(tile.entry + 1u);
  return ivec4(first, first + keys.x, keys.y, keys.z);
}

#endif  // TESSERA_ATTENTION_WORK_GLSL
