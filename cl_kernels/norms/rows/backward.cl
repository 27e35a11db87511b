// SPDX-License-Identifier: Apache-2.0
// What     Gradients of RMSNorm and LayerNorm: of input and residual, and sums over this line's rows
//          of what makes those of weight and bias.
// Who      A work-group owns consecutive blocks of WG_Y rows; a line of WG_X items takes a row of each.
// Memory   x, residual, grad_output once, grad_input once, where 4 * VECTORS * WG_X elements hold a
//          row; a row of float sums for each line, twice.
// Numerics Float; every sum has one order.
// Assumes  Rows below 2^31, operands below 2^32 elements, ALIGNED is true where it is 1; no
//          work-group without rows.
#include "norms/core/operands.clh"
#define NORM_SUMS (CENTERED != 0 ? 3u : 2u)

typedef struct {
  const struct NormBackwardArgs* args;
  const global scalar *dy, *x, *weight, *residual, *dsum;
  global scalar *dx, *dresidual;
  global float* scratch;
  local float4* space;
} NormOperands;

#define LOAD_X(at, left) load_column(operands->x, at, left)
#define LOAD_RESIDUAL(at, left) load_column(operands->residual, at, left)
#define LOAD_DY(at, left) load_column(operands->dy, at, left)
#define LOAD_DSUM(at, left) load_column(operands->dsum, at, left)
#define LOAD_X_CHUNK(at, left) load_chunk(operands->x, at, left)
#define LOAD_RESIDUAL_CHUNK(at, left) load_chunk(operands->residual, at, left)
#define LOAD_DY_CHUNK(at, left) load_chunk(operands->dy, at, left)
#define LOAD_DSUM_CHUNK(at, left) load_chunk(operands->dsum, at, left)
#define LOAD_WEIGHT(at, left) \
  load_any_column(operands->weight, at, left, (ARGS(features) & NORM_WIDE_WEIGHT) != 0u)
#define STORE_DX(value, at, left) store_column(value, operands->dx, at, left)
#define STORE_DRESIDUAL(value, at, left) store_column(value, operands->dresidual, at, left)
#define STORE_DX_CHUNK(first, second, at, left) store_chunk(first, second, operands->dx, at, left)
#define STORE_DRESIDUAL_CHUNK(first, second, at, left) \
  store_chunk(first, second, operands->dresidual, at, left)
#define LOAD_SCRATCH(at) (*(const global float4*)(operands->scratch + (at)))
#define STORE_SCRATCH(value, at) (*(global float4*)(operands->scratch + (at)) = (value))
#include "operations/norms/lines.h"
#include "operations/norms/rows/backward_store.h"

KERNEL void norm_backward(const global scalar* restrict dy_elements,
                          const global scalar* restrict x_elements,
                          const global scalar* restrict weight,
                          const global scalar* restrict residual_elements,
                          const global scalar* restrict dsum_elements,
                          global scalar* restrict dx_elements,
                          global scalar* restrict dresidual_elements,
                          global float* restrict scratch, const struct NormBackwardArgs args) {
  local float4 space[WG_Y * NORM_SUMS * NORM_LINE / 4];
  const NormOperands call = {&args,         dy_elements, x_elements,         weight, residual_elements,
                             dsum_elements, dx_elements, dresidual_elements, scratch, space};
  const NormOperands* operands = &call;
#include "operations/norms/rows/backward.h"
}
