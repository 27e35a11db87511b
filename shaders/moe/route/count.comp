// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/count.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) writeonly buffer Scratch { uint scratch[]; };
PUSH_ARGS(MoeRouteArgs);

#define ID(i) ids[args.ids_offset + (i)]
#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]

void main() {
#include "operations/moe/route/count.h"
}
