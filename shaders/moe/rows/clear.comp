// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/clear.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moe/rows/rows.glsl"

layout(std430, binding = 0) writeonly buffer Scratch { int map[]; };
PUSH_ARGS(MoeRowsArgs);

#define MAP(row) map[row]

void main() {
#include "operations/moe/rows/clear.h"
}
