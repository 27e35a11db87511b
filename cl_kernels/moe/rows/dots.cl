// SPDX-License-Identifier: Apache-2.0
// What     Gradients of weights: the product of a token's gradient with the row of its expert, 0 of choices without one
// Who      LANES items own a choice at a time, an item every LANES-th vector of four of it.
// Memory   The row of each choice once, gradients of tokens once for each of their choices.
// Numerics Float; sums as trees.
// Assumes  Fewer than 2^31 rows and choices; offsets and strides below 2^32.
#include "lib/columns.clh"
#include "moe/rows/rows.clh"

#define LOAD_ROW(row, i) load_column(rows, ROW_AT(row, i), dim - (i))
#define LOAD_TOKEN(token, i) load_column(tokens, TOKEN_AT(token, i), dim - (i))
#define STORE_GRAD_WEIGHT(x, n) grad_weights[args.grad_weights_offset + (n)] = (x)

// Every item of the work-group comes here.
#if LANES > 1
INLINE float sum_line(local float* space, float x) {
  const uint item = get_local_id(0), lane = item % LANES;
  space[item] = x;
  for (uint width = LANES / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < width) space[item] += space[item + width];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float all = space[item - lane];
  barrier(CLK_LOCAL_MEM_FENCE);
  return all;
}
#define SUM_LINE(x) sum_line(space, x)
#else
#define SUM_LINE(x) (x)
#endif

KERNEL void moe_dots(const global int* restrict ids, const global int* restrict slots, const global int* restrict starts,
                     const global scalar* restrict tokens, const global scalar* restrict rows,
                     global float* restrict grad_weights, volatile global uint* errors, const struct MoeRowsArgs args) {
#if LANES > 1
  local float space[WG_X];
#endif
#include "operations/moe/rows/dots.h"
}
