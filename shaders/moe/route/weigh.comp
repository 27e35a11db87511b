// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/weigh.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"

layout(std430, binding = 0) readonly buffer Slots { int slots[]; };
layout(std430, binding = 1) buffer Weights { float weights[]; };
PUSH_ARGS(MoeRouteArgs);

#define SLOT(i) slots[args.slots_offset + (i)]
#define WEIGHT(i) weights[args.weights_offset + (i)]

void main() {
#include "operations/moe/route/weigh.h"
}
