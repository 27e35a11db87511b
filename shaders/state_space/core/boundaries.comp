// SPDX-License-Identifier: Apache-2.0
// What     Boundaries of packed sequences, cut to the tokens and to not decrease; what is wrong with them is raised.
// Who      One work-group; an item owns neighbouring boundaries.
// Memory   Boundaries thrice, ordered ones once.
// Numerics Integers.
// Assumes  Fewer than 2^31 sequences.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/state_space_core/args.h"

layout(std430, binding = 0) readonly buffer Boundaries { int cu_seqlens[]; };
layout(std430, binding = 1) writeonly buffer Scratch { int scratch[]; };
layout(std430, binding = 2) buffer Errors { uint errors[]; };
PUSH_ARGS(SpaceBoundaryArgs);
shared int parts[WG_X];

#define ARGS(name) (args.name)
#define LOCAL_ID_X gl_LocalInvocationID.x
#define SPACE_BARRIER() barrier()
#define PARTS(i) parts[i]
#define LOAD_BOUNDARY(i) cu_seqlens[args.offset + (i)*args.stride]
#define STORE_BOUNDARY(x, i) scratch[i] = x
#define RAISE(error, index) RAISE_ERROR(errors, args.errors, error, index)

void main() {
#include "operations/state_space_core/boundaries.h"
}
