// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/place.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) readonly buffer Scratch { uint scratch[]; };
layout(std430, binding = 2) writeonly buffer Slots { int slots[]; };
PUSH_ARGS(MoeRouteArgs);

shared int IDS[MOE_BLOCK];

#define ID(i) ids[args.ids_offset + (i)]
#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]
#define STORE_SLOT(x, i) slots[args.slots_offset + (i)] = (x)

void main() {
#include "operations/moe/route/place.h"
}
