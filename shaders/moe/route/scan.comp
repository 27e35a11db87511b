// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/scan.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"

layout(std430, binding = 0) buffer Scratch { uint scratch[]; };
layout(std430, binding = 1) writeonly buffer Counts { int counts[]; };
layout(std430, binding = 2) writeonly buffer Offsets { int offsets[]; };
PUSH_ARGS(MoeRouteArgs);

shared uint KEPT[ROOM];

#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]
#define TOTAL(e) scratch[args.totals + (e)]
#define STORE_COUNT(x, e) counts[args.counts_offset + (e)] = int(x)
#define STORE_OFFSET(x, e) offsets[args.offsets_offset + (e)] = int(x)

void main() {
#include "operations/moe/route/scan.h"
}
