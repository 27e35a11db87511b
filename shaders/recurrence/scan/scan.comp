// SPDX-License-Identifier: Apache-2.0
// What     Cumulative sums over tokens, in either direction, of whole sequences or of chunks of them.
// Who      An item owns a head's feature of a chunk or, where sequences are packed, of a sequence.
// Memory   Input once, output once.
// Numerics Float, token after token; one rounding of each output.
// Assumes  Operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/cumsum/args.h"

TYPED_INPUT(from, 0)
layout(std430, binding = 1) readonly buffer Boundaries { int boundaries[]; };
TYPED_OUTPUT(result, 2)
PUSH_ARGS(CumsumArgs);

#define ARGS(name) (args.name)
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_ID_Y gl_WorkGroupID.y
#define GROUP_COUNT_Y gl_NumWorkGroups.y
#define LOAD(at) load_from_steps(at, 0u, 1u, args.in_type).x
#define STORE(x, at) store_result_steps(vec4(x), at, 0u, 1u, args.out_type)
#define LOAD_BOUNDARY(i) boundaries[i]

void main() {
#include "operations/cumsum/scan.h"
}
