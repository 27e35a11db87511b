// SPDX-License-Identifier: Apache-2.0
// What     The sums of shares of a product's terms, added up and finished; of no shares, what is left of a product of
//          no terms.
// Who      An item steps over vectors of four columns.
// Memory   Each share of a sum once, the operands beside the product once, the output once.
// Numerics Float, shares in order; one rounding.
// Assumes  Operands below 2^31 elements.
#include "matmul/core/operands.clh"

#define LOAD_PARTIAL(vector) (*((const global float4*)(scratch + ARGS(partial)) + (vector)))

KERNEL void matmul_combine(const global float* restrict scratch, MATMUL_FINISH_PARAMETERS,
                           const struct MatmulArgs args) {
  const MatmulOperands call = MATMUL_OPERANDS;
  const MatmulOperands* operands = &call;
#include "operations/matmul_core/core/combine.h"
}
