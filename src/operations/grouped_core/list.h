// SPDX-License-Identifier: Apache-2.0
// The body of matmul/grouped/list, in the text that OpenCL C and GLSL share. The language brings
// SIZE(g), RAISE(error, g), END(g) and LIST(i) in memory, SPACE(i), words that the work-group
// shares, and its barriers.
//
//   Counts stay at or below rows + 1 on their way, so that no sum overflows: `rows + 1` says that
//   there are too many.

#include "operations/grouped_core/scan.h"

// The rows before group g.
#define GROUPED_BEFORE(g) ((g) == 0u || groups == 0u ? 0u : END(min(g, groups) - 1u))

const u32 item = LOCAL_ID_X, rows = ARGS(rows), groups = ARGS(groups), held = ARGS(held);
u32 before = 0u;
for (u32 base = 0u; UNIFORM(base < groups); base += TO_U32(WG_X)) {
  const u32 g = base + item;
  i32 size = 0;
  if (g < groups) size = SIZE(g);
  if (size < 0) RAISE(GROUPED_NEGATIVE_SIZE, g);
  GROUPED_SCAN(min(TO_U32(max(size, 0)), rows + 1u), rows + 1u)
  const u32 end = min(before + SPACE(from + item), rows + 1u);
  if (size > 0 && end > rows) RAISE(GROUPED_BEYOND_ROWS, g);
  if (g < groups) END(g) = min(end, rows);
  before = min(before + SPACE(from + TO_U32(WG_X) - 1u), rows + 1u);
  GROUP_BARRIER();
}
MEMORY_BARRIER();

u32 items = 0u;
const u32 ranges = held + 2u;  // the rows before those of the held groups, theirs, those behind
for (u32 base = 0u; UNIFORM(base < ranges); base += TO_U32(WG_X)) {
  const u32 range = base + item;
  const bool is_held = range >= 1u && range <= held;
  u32 first = 0u, end = 0u, count = 0u;
  if (range < ranges) {
    if (range != 0u) first = GROUPED_BEFORE(ARGS(first) + range - 1u);
    end = range > held ? rows : GROUPED_BEFORE(ARGS(first) + range);
    if (ARGS(tile) == 0u) {
      count = is_held ? 1u : 0u;
    } else {
      count = (end - first + ARGS(tile) - 1u) / ARGS(tile);
    }
  }
  GROUPED_SCAN(count, 0xffffffffu)
  const u32 place = items + SPACE(from + item) - count;
  for (u32 i = 0u; i < count; ++i)
    LIST(1u + place + i) =
        MAKE_UINT4(is_held ? range - 1u : 0u, first + i * ARGS(tile), end, is_held ? 1u : 0u);
  items += SPACE(from + TO_U32(WG_X) - 1u);
  GROUP_BARRIER();
}
if (item == 0u) LIST(0u) = MAKE_UINT4(items, 0u, 0u, 0u);
