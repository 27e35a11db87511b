// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of few rows, or shares of the sums to scratch: any strides, any storage types.
// Who      A work-group owns all rows of COLUMNS LANES_N columns and a share of the terms, which LANES_K items share in
//          turn; it steps over blocks of columns.
// Memory   b once, vectors of 4 columns by 4 terms straight to registers, SQUARES of them on their way; a from the caches.
// Numerics Float; the sums of lanes are added in a fixed order, the shares of a split by matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#define MATMUL_SCALES 0
#include "lib/tiles/features.clh"
#include "matmul/core/operands.clh"
#include "operations/matmul_core/skinny/geometry.h"

#define LOAD_A_VECTOR(at, type) load_typed_vector(a, at, type)
#define LOAD_A_STEPS(at, step, count, type) load_typed_steps(a, at, step, count, type)
#define LOAD_B_VECTOR(at, type) load_typed_vector(b, at, type)
#define LOAD_B_STEPS(at, step, count, type) load_typed_steps(b, at, step, count, type)
#define STORE_PARTIAL(vector, x) *((global float4*)(scratch + ARGS(partial)) + (vector)) = x
#define SKINNY_A (SQUARES * COLUMNS)
#define HELD(i) held[i]
#define PRODUCT(i) product[i]
#define SHARED(i) shared_sums[i]
#define SHARED_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

KERNEL void matmul_skinny(const global void* restrict a, const global void* restrict b, global float* restrict scratch,
                          MATMUL_FINISH_PARAMETERS, const struct MatmulArgs args) {
  local float4 shared_sums[SKINNY_LOCAL_VECTORS];
  const MatmulOperands call = MATMUL_OPERANDS;
  const MatmulOperands* operands = &call;
  float4 held[SKINNY_A + 4];
  float product[ROWS * COLUMNS];
#include "operations/matmul_core/skinny/product.h"
}
