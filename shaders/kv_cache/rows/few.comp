// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/few.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/rows/copy.glsl"
#include "kv_cache/core/few.glsl"

layout(std430, binding = 2) readonly buffer Slots { int slots[]; };
layout(std430, binding = 5) readonly buffer Tables { int tables[]; };
layout(std430, binding = 6) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 7) readonly buffer Count { int count_of[]; };
layout(std430, binding = 8) readonly buffer Boundaries { int boundaries_of[]; };
layout(std430, binding = 9) buffer Errors { uint errors[]; };
BUFFER_ARGS(CacheFewRowsArgs, 10);

shared uint overwritten;

#define FEW(name) args.few.name
#define OVERWRITTEN overwritten

void main() {
  take_side(args.copy);
#include "operations/kv_cache/rows/few.h"
}
