// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/map.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moe/rows/rows.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) readonly buffer Slots { int slots[]; };
layout(std430, binding = 2) readonly buffer Starts { int starts[]; };
layout(std430, binding = 3) buffer Scratch { int map[]; };
layout(std430, binding = 4) buffer Errors { uint errors[]; };
PUSH_ARGS(MoeRowsArgs);

#define MAP_LARGEST(row, n) atomicMax(map[row], n)

void main() {
#include "operations/moe/rows/map.h"
}
