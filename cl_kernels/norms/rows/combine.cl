// SPDX-License-Identifier: Apache-2.0
// What     Sums of rows of floats in scratch, rounded: gradients of weight, bias, and of a residual that broadcasts.
// Who      A work-group owns WG_X columns of four of an output row; line n of WG_Y takes every WG_Y-th term from n on.
// Memory   The terms once, the output once.
// Numerics Float: each line in order, then lines in order; one rounding.
// Assumes  Scratch below 2^32 floats.
#define ALIGNED 0
#define SM80 0
#include "norms/core/operands.clh"

typedef struct {
  const struct NormCombineArgs* args;
  const global float* scratch;
  global scalar* result;
  local float4* space;
} NormOperands;

#define LOAD_SCRATCH(at) (*(const global float4*)(operands->scratch + (at)))
#define STORE_RESULT(value, at, left) \
  store_any_column(value, operands->result, at, left, ARGS(wide) != 0u)

KERNEL void norm_combine(const global float* restrict scratch, global scalar* restrict result,
                         const struct NormCombineArgs args) {
  local float4 space[WG_X * WG_Y];
  const NormOperands call = {&args, scratch, result, space};
  const NormOperands* operands = &call;
#include "operations/norms/rows/combine.h"
}
