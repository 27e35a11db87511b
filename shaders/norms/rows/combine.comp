// SPDX-License-Identifier: Apache-2.0
// What     Sums of rows of floats in scratch, rounded: gradients of weight, bias, and of a residual that broadcasts.
// Who      A work-group owns WG_X columns of four of an output row; line n of WG_Y takes every WG_Y-th term from n on.
// Memory   The terms once, the output once.
// Numerics Float: each line in order, then lines in order; one rounding.
// Assumes  Scratch and output below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/norms/args.h"
#include "operations/norms/rows/tunables.def"

layout(std430, binding = 0) readonly buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 1) writeonly buffer Result { scalar result_elements[]; };
layout(std430, binding = 1) writeonly buffer ResultVectors { scalar4 result_vectors[]; };
layout(std430, binding = 1) writeonly buffer ResultFloats { float result_floats[]; };
PUSH_ARGS(NormCombineArgs);

#define NORM_VECTORS (WG_X * WG_Y)
#include "norms/core/operands.glsl"
STORE_COLUMN(store_result, result_elements, result_vectors)
#define LOAD_SCRATCH(at) scratch[(at) / 4u]

void STORE_RESULT(vec4 value, uint at, uint left) {
#if DTYPE != DTYPE_F32
  if (args.wide != 0u) {
    result_floats[at] = value.x;
    if (left > 1u) result_floats[at + 1u] = value.y;
    if (left > 2u) result_floats[at + 2u] = value.z;
    if (left > 3u) result_floats[at + 3u] = value.w;
    return;
  }
#endif
  store_result(value, at, left);
}

void main() {
#include "operations/norms/rows/combine.h"
}
