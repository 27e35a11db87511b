// SPDX-License-Identifier: Apache-2.0
// The body of matmul/sparse/list, in the text that OpenCL C and GLSL share. The language brings
// INDEX(at), MASK(at), RAISE(error, index), LIST(i) and WORD(i) in memory, COUNT_UP(i), which adds
// 1 to a word and gives what it was, SPACE(i), words that the work-group shares, and its barriers.
//
//   Blocks are counted and placed in any order, then each result's are sorted: sums have one order.
#include "operations/grouped_core/scan.h"

#define SPARSE_STEPS(place) \
  (TO_U32(row) * ARGS(place).row + TO_U32(column) * ARGS(place).column + e * ARGS(place).block)
// Names where block e is and whether it counts.
#define SPARSE_BLOCK(e)                                                            \
  const u32 index = ARGS(index_offset) + (e)*ARGS(index_step);                     \
  const i32 row = INDEX(index), column = INDEX(index + ARGS(index_side));          \
  const bool row_inside = row >= 0 && TO_U32(row) < ARGS(rows);                    \
  const bool inside = row_inside && column >= 0 && TO_U32(column) < ARGS(columns); \
  bool counts = inside;                                                            \
  if (inside && ARGS(masked) != 0u) counts = MASK(ARGS(mask_offset) + SPARSE_STEPS(mask)) != 0u;
// The result that block e is of.
#define SPARSE_RESULT(e) \
  (by == SPARSE_BY_ROW ? TO_U32(row) : by == SPARSE_BY_COLUMN ? TO_U32(column) : (e))
#define SPARSE_COUNTER(result) (ARGS(words) + (result))
#define SPARSE_ORDER(place) (ARGS(words) + results + (place))
#define SPARSE_ENTRY(place)                           \
  WORD(ARGS(table) + 2u * (place)) = SPARSE_STEPS(a); \
  WORD(ARGS(table) + 2u * (place) + 1u) = SPARSE_STEPS(b);

const u32 item = LOCAL_ID_X, blocks = ARGS(blocks), results = ARGS(results), by = ARGS(by);
for (u32 r = item; r < results; r += TO_U32(WG_X)) WORD(SPARSE_COUNTER(r)) = 0u;
MEMORY_BARRIER();
for (u32 e = item; e < blocks; e += TO_U32(WG_X)) {
  SPARSE_BLOCK(e)
  if (!inside) RAISE(SPARSE_OUTSIDE, 2u * e + (row_inside ? 1u : 0u));
  if (counts) COUNT_UP(SPARSE_COUNTER(SPARSE_RESULT(e)));
}
MEMORY_BARRIER();
u32 before = 0u;
for (u32 base = 0u; base < results; base += TO_U32(WG_X)) {
  const u32 r = base + item;
  u32 count = 0u;
  if (r < results) count = WORD(SPARSE_COUNTER(r));
  GROUPED_SCAN(count, 0xffffffffu)
  const u32 end = before + SPACE(from + item);
  if (r < results) {
    LIST(1u + r) = MAKE_UINT4(r, end - count, end, 1u);
    WORD(SPARSE_COUNTER(r)) = end - count;
  }
  before += SPACE(from + TO_U32(WG_X) - 1u);
  GROUP_BARRIER();
}
if (item == 0u) LIST(0u) = MAKE_UINT4(results, 0u, 0u, 0u);
MEMORY_BARRIER();
for (u32 e = item; e < blocks; e += TO_U32(WG_X)) {
  SPARSE_BLOCK(e)
  if (counts) {
    const u32 place = COUNT_UP(SPARSE_COUNTER(SPARSE_RESULT(e)));
    WORD(SPARSE_ORDER(place)) = e;
  }
}
MEMORY_BARRIER();
for (u32 r = item; r < results; r += TO_U32(WG_X)) {
  const u32 end = WORD(SPARSE_COUNTER(r)), first = r == 0u ? 0u : WORD(SPARSE_COUNTER(r - 1u));
  // A heap, whose largest goes behind it: no order of blocks takes long.
  const u32 count = end - first;
  u32 roots = count / 2u, size = count;
  while (size > 1u) {
    u32 sinking;
    if (roots > 0u) {
      --roots;
      sinking = WORD(SPARSE_ORDER(first + roots));
    } else {
      --size;
      sinking = WORD(SPARSE_ORDER(first + size));
      WORD(SPARSE_ORDER(first + size)) = WORD(SPARSE_ORDER(first));
    }
    u32 at = roots;
    u32 child = 2u * at + 1u;
    bool sinks = child < size;
    while (sinks) {
      u32 larger = WORD(SPARSE_ORDER(first + child));
      if (child + 1u < size) {
        const u32 other = WORD(SPARSE_ORDER(first + child + 1u));
        if (other > larger) {
          larger = other;
          ++child;
        }
      }
      sinks = larger > sinking;
      if (sinks) {
        WORD(SPARSE_ORDER(first + at)) = larger;
        at = child;
        child = 2u * at + 1u;
        sinks = child < size;
      }
    }
    WORD(SPARSE_ORDER(first + at)) = sinking;
  }
  for (u32 place = first; place < end; ++place) {
    const u32 e = WORD(SPARSE_ORDER(place));
    SPARSE_BLOCK(e)
    if (counts) {
      SPARSE_ENTRY(place)
    }
  }
}
