// SPDX-License-Identifier: Apache-2.0
// What     Sums of the rows of b, a product with ones: shares of the terms to scratch.
// Who      An item has four columns of a batch and a share of the terms, and steps over such.
// Memory   b once, by vectors where its columns are aligned.
// Numerics Float, terms in order; the shares are added in order by matmul/core/combine.
// Assumes  Operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/sums.def"

TYPED_INPUT(b, 0)
layout(std430, binding = 1) writeonly buffer Scratch { vec4 scratch[]; };
BUFFER_ARGS(MatmulArgs, 2);
#define MATMUL_PARAMETERS
#define MATMUL_ARGUMENTS
#define ARGS(name) (args.name)
#include "operations/matmul_core/core/place.h"

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define LOAD_B_VECTOR load_b_vector
#define LOAD_B_STEPS load_b_steps
#define STORE_PARTIAL(vector, x) scratch[args.partial / 4u + (vector)] = x

void main() {
#include "operations/matmul_core/core/sums.h"
}
