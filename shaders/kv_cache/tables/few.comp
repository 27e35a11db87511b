// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/few.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/core/few.glsl"

layout(std430, binding = 0) readonly buffer Slots { int slots[]; };
layout(std430, binding = 1) readonly buffer Tables { int tables[]; };
layout(std430, binding = 2) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 3) readonly buffer Count { int count_of[]; };
layout(std430, binding = 4) readonly buffer Boundaries { int boundaries_of[]; };
layout(std430, binding = 5) writeonly buffer Scratch { int scratch[]; };
layout(std430, binding = 6) buffer Errors { uint errors[]; };
PUSH_ARGS(CacheFewArgs);

#define FEW(name) args.name
#define LOCAL_ID gl_LocalInvocationID.x
#define LAST_PLACE(n) scratch[args.places.list + (n)]

void main() {
#include "operations/kv_cache/tables/few.h"
}
