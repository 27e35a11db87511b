// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/common/boundaries.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/common/boundaries_args.h"

layout(std430, binding = 0) readonly buffer Boundaries { int boundaries_of[]; };
layout(std430, binding = 1) readonly buffer Count { int count_of[]; };
layout(std430, binding = 2) writeonly buffer Scratch { int scratch[]; };
layout(std430, binding = 3) buffer Errors { uint errors[]; };
PUSH_ARGS(BoundariesArgs);

shared int highest_of[WG_X];

#define LOCAL_ID gl_LocalInvocationID.x
#define ARGS(name) (args.name)
#define LOAD_BOUNDARY(i) boundaries_of[args.offset + (i)*args.stride]
#define COUNT count_of[args.count_offset]
#define HIGHEST(item) highest_of[item]
#define RESULT(i) scratch[args.result + (i)]
#define RAISE(kind, index) RAISE_ERROR(errors, args.errors, kind, index)
#define BARRIER() barrier()

void main() {
#include "operations/common/boundaries.h"
}
