// SPDX-License-Identifier: Apache-2.0
// What     Gradients of merged attention states: of each part's output and log-sum-exp
// Who      LANES items own a row at a time, an item every LANES-th vector of four of it.
// Memory   Parts twice: for the sum of all products with the gradient, and for each part's own.
// Numerics Float; products of rows are summed as trees. Parts of weight 0 are not read, their gradients are 0.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32.
#define ARGS(name) (args.merge.name)
#include "attention_states/states.clh"

#define LOAD_GRADIENT(i) load_column(grad_output, ROW_OF(ARGS(result), 0) + (i), dim - (i))
#define GRAD_MERGED grad_merged[ROW_OF(ARGS(merged), 0)]
#define STORE_GRAD_SUM(x, p)                                  \
  if ((p) < ARGS(parts)) {                                    \
    grad_sums[ROW_OF(args.grad_sums, p)] = (x);               \
  } else {                                                    \
    grad_other_sum[ROW_OF(args.grad_other_sum, 0)] = (x);     \
  }
#define STORE_GRAD_PART(x, p, i)                                                            \
  if ((p) < ARGS(parts)) {                                                                  \
    store_column(x, grad_outputs, ROW_OF(args.grad_outputs, p) + (i), dim - (i));           \
  } else {                                                                                  \
    store_column(x, grad_other, ROW_OF(args.grad_other, 0) + (i), dim - (i));               \
  }

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

KERNEL void merge_states_backward(const global scalar* restrict outputs, const global float* restrict sums,
                                  const global scalar* restrict other, const global float* restrict other_sum,
                                  const global scalar* restrict grad_output, const global float* restrict grad_merged,
                                  global scalar* restrict grad_outputs, global float* restrict grad_sums,
                                  global scalar* restrict grad_other, global float* restrict grad_other_sum,
                                  const struct MergeStatesBackwardArgs args) {
#if LANES > 1
  local float space[WG_X];
#endif
#include "operations/merge_attention_states/backward.h"
}
