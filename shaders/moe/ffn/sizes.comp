// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/ffn/sizes.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/moe/ffn/args.h"

layout(std430, binding = 0) readonly buffer Starts { int starts[]; };
layout(std430, binding = 1) writeonly buffer Scratch { int space[]; };
PUSH_ARGS(MoeFfnArgs);

#define ARGS(name) (args.name)
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GLOBAL_COUNT (gl_NumWorkGroups.x * WG_X)
#define START(e) starts[args.starts + (e)]
#define SIZE(e) space[args.sizes + (e)]

void main() {
#include "operations/moe/ffn/sizes.h"
}
