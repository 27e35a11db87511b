// SPDX-License-Identifier: Apache-2.0
// What     The sums of shares of a product's terms, added up and finished; of no shares, what is left of a product of
//          no terms.
// Who      An item steps over vectors of four columns.
// Memory   Each share of a sum once, the operands beside the product once, the output once.
// Numerics Float, shares in order; one rounding.
// Assumes  Operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/matmul_core/core/args.h"

layout(std430, binding = 0) readonly buffer Scratch { vec4 scratch[]; };
#define MATMUL_BINDING 1
#include "matmul/core/operands.glsl"
#define LOAD_PARTIAL(vector) scratch[args.partial / 4u + (vector)]

void main() {
#include "operations/matmul_core/core/combine.h"
}
