// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/losses.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"

layout(std430, binding = 0) readonly buffer Scratch { float scratch[]; };
layout(std430, binding = 0) readonly buffer Words { uint words[]; };
layout(std430, binding = 1) writeonly buffer Balance { float balance_loss[]; };
layout(std430, binding = 2) writeonly buffer Z { float z_loss[]; };
PUSH_ARGS(MoeRouteArgs);

#define HAS_BALANCE (LOSSES % 2u != 0u)
#define HAS_Z (LOSSES / 2u != 0u)
#define LOG_SUM(token) scratch[args.sums_of_exp + (token)]
#define BLOCK_SUM(block, e) scratch[args.block_sums + (block) * args.experts + (e)]
#define STORE_BALANCE(x) balance_loss[args.balance_offset] = (x)
#define STORE_Z(x) z_loss[args.z_offset] = (x)
#define TOTAL(e) words[args.totals + (e)]

void main() {
#include "operations/moe/route/losses.h"
}
