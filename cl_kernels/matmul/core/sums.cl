// SPDX-License-Identifier: Apache-2.0
// What     Sums of the rows of b, a product with ones: shares of the terms to scratch.
// Who      An item has four columns of a batch and a share of the terms, and steps over such.
// Memory   b once, by vectors where its columns are aligned.
// Numerics Float, terms in order; the shares are added in order by matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#include "matmul/core/operands.clh"

#define LOAD_B_VECTOR(at, type) load_typed_vector(b, at, type)
#define LOAD_B_STEPS(at, step, count, type) load_typed_steps(b, at, step, count, type)
#define STORE_PARTIAL(vector, x) *((global float4*)(scratch + ARGS(partial)) + (vector)) = x

KERNEL void matmul_sums(const global void* restrict b, global float* restrict scratch, const struct MatmulArgs args) {
  const MatmulOperands call = {.args = &args};
  const MatmulOperands* operands = &call;
#include "operations/matmul_core/core/sums.h"
}
