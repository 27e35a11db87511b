// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of few rows, or shares of the sums to scratch: any strides, any storage types.
// Who      A work-group owns all rows of COLUMNS LANES_N columns and a share of the terms, which LANES_K items share in
//          turn; it steps over blocks of columns.
// Memory   b once, vectors of 4 columns by 4 terms straight to registers, SQUARES of them on their way; a from the caches.
// Numerics Float; the sums of lanes are added in a fixed order, the shares of a split by matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "lib/tiles/features.glsl"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/skinny/skinny.def"
#include "operations/matmul_core/skinny/geometry.h"

TYPED_INPUT(a, 0)
TYPED_INPUT(b, 1)
layout(std430, binding = 2) writeonly buffer Scratch { vec4 scratch[]; };
#define MATMUL_BINDING 3
#define MATMUL_SCALES 0
#include "matmul/core/operands.glsl"

#define SKINNY_A TO_U32(SQUARES * COLUMNS)
shared vec4 shared_sums[SKINNY_LOCAL_VECTORS];
vec4 held[SQUARES * COLUMNS + 4];
float product[ROWS * COLUMNS];

#define LOAD_A_VECTOR load_a_vector
#define LOAD_A_STEPS load_a_steps
#define LOAD_B_VECTOR load_b_vector
#define LOAD_B_STEPS load_b_steps
#define STORE_PARTIAL(vector, x) scratch[args.partial / 4u + (vector)] = x
#define HELD(i) held[i]
#define PRODUCT(i) product[i]
#define SHARED(i) shared_sums[i]
#define SHARED_BARRIER() barrier()

void main() {
#include "operations/matmul_core/skinny/product.h"
}
