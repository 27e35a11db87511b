// SPDX-License-Identifier: Apache-2.0
// The body of matmul/sparse/list, in the text that OpenCL C and GLSL share. The language brings
// INDEX(at), MASK(at), RAISE(error, index), LIST(i) and WORD(i) in memory, COUNT_UP(i), which adds
// 1 to a word and gives what it was, SPACE(i), words that the work-group shares, and its barriers.
//
//   Blocks are counted, then placed behind each other as they are stored: sums have one order.
#include "operations/grouped_core/scan.h"
#include "operations/sparse_core/block.h"

#define SPARSE_COUNTER(result) (ARGS(words) + (result))
#define SPARSE_NO_RESULT 0xffffffffu

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
for (u32 base = 0u; UNIFORM(base < results); base += TO_U32(WG_X)) {
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
// As many blocks as there are items at a time: behind those of earlier rounds, and of this round
// those of a lower number.
for (u32 base = 0u; UNIFORM(base < blocks); base += TO_U32(WG_X)) {
  const u32 e = base + item;
  u32 result = SPARSE_NO_RESULT, a_at = 0u, b_at = 0u;
  if (e < blocks) {
    SPARSE_BLOCK(e)
    if (counts) {
      result = SPARSE_RESULT(e);
      a_at = SPARSE_STEPS(a);
      b_at = SPARSE_STEPS(b);
    }
  }
  SPACE(item) = result;
  GROUP_BARRIER();
  if (result != SPARSE_NO_RESULT) {
    u32 place = WORD(SPARSE_COUNTER(result));
    for (u32 i = 0u; i < item; ++i) place += SPACE(i) == result ? 1u : 0u;
    WORD(ARGS(table) + 2u * place) = a_at;
    WORD(ARGS(table) + 2u * place + 1u) = b_at;
  }
  MEMORY_BARRIER();
  if (result != SPARSE_NO_RESULT) COUNT_UP(SPARSE_COUNTER(result));
  MEMORY_BARRIER();
}
