// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/sums.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"
#include "operations/moe/route/logits.h"

layout(std430, binding = 0) readonly buffer Logits { scalar logits[]; };
layout(std430, binding = 1) buffer Scratch { float scratch[]; };
PUSH_ARGS(MoeRouteArgs);

#define LOAD_LOGIT(token, e) load_scalar(logits[args.logits_offset + (token) * args.logits_stride + (e)])
#define LOG_SUM(token) scratch[args.sums_of_exp + (token)]
#define BLOCK_SUM(block, e) scratch[args.block_sums + (block) * args.experts + (e)]

void main() {
#include "operations/moe/route/sums.h"
}
