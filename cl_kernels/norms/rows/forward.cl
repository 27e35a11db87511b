// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias, and the sum; RMSNorm or LayerNorm over rows.
// Who      A line of WG_X items owns a row at a time, an item VECTORS vectors of four elements of it.
// Memory   x and residual once, output and sum once, where 4 * VECTORS * WG_X elements hold a row;
//          else what is beyond is read again, from a cache as a rule, for each pass. Weights: caches.
// Numerics Float; the mean comes off before squares are summed. Lanes, then folds, in one order.
// Assumes  Rows below 2^31, operands below 2^32 elements, ALIGNED is true where it is 1.
#include "norms/core/operands.clh"
#define NORM_SUMS 1u

typedef struct {
  const struct NormForwardArgs* args;
  const global scalar *x, *weight, *bias, *residual;
  global scalar *y, *sum;
  local float4* space;
} NormOperands;

#define LOAD_X(at, left) load_column(operands->x, at, left)
#define LOAD_RESIDUAL(at, left) load_column(operands->residual, at, left)
#define LOAD_X_CHUNK(at, left) load_chunk(operands->x, at, left)
#define LOAD_RESIDUAL_CHUNK(at, left) load_chunk(operands->residual, at, left)
#define LOAD_WEIGHT_CHUNK(at, left) load_chunk(operands->weight, at, left)
#define LOAD_BIAS_CHUNK(at, left) load_chunk(operands->bias, at, left)
#define LOAD_WEIGHT(at, left) \
  load_any_column(operands->weight, at, left, (ARGS(features) & NORM_WIDE_WEIGHT) != 0u)
#define LOAD_BIAS(at, left) \
  load_any_column(operands->bias, at, left, (ARGS(features) & NORM_WIDE_BIAS) != 0u)
#define STORE_Y(value, at, left) store_column(value, operands->y, at, left)
#define STORE_SUM(value, at, left) store_column(value, operands->sum, at, left)
#define STORE_Y_CHUNK(first, second, at, left) store_chunk(first, second, operands->y, at, left)
#define STORE_SUM_CHUNK(first, second, at, left) store_chunk(first, second, operands->sum, at, left)
#include "operations/norms/lines.h"
#include "operations/norms/weigh.h"

KERNEL void norm_forward(const global scalar* restrict x_elements,
                         const global scalar* restrict weight, const global scalar* restrict bias,
                         const global scalar* restrict residual_elements,
                         global scalar* restrict y_elements, global scalar* restrict sum_elements,
                         const struct NormForwardArgs args) {
  local float4 space[WG_Y * NORM_SUMS * NORM_LINE / 4];
  const NormOperands call = {&args,      x_elements,   weight, bias, residual_elements,
                             y_elements, sum_elements, space};
  const NormOperands* operands = &call;
#include "operations/norms/rows/forward.h"
}
