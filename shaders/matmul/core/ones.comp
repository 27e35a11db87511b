// SPDX-License-Identifier: Apache-2.0
// What     A vector of ones at the beginning of scratch: sums of rows and columns are products with it.
// Who      One item.
// Memory   16 bytes.
// Numerics None.
// Assumes  Nothing.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"

layout(std430, binding = 0) writeonly buffer Scratch { vec4 scratch[]; };

void main() { scratch[0] = vec4(1.0); }
