// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/dots.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moe/rows/rows.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) readonly buffer Slots { int slots[]; };
layout(std430, binding = 2) readonly buffer Starts { int starts[]; };
layout(std430, binding = 3) readonly buffer Tokens { scalar token_elements[]; };
layout(std430, binding = 3) readonly buffer TokenVectors { scalar4 token_vectors[]; };
layout(std430, binding = 4) readonly buffer Rows { scalar row_elements[]; };
layout(std430, binding = 4) readonly buffer RowVectors { scalar4 row_vectors[]; };
layout(std430, binding = 5) writeonly buffer GradWeights { float grad_weights[]; };
layout(std430, binding = 6) buffer Errors { uint errors[]; };
PUSH_ARGS(MoeRowsArgs);
LOAD_COLUMN(load_row, row_elements, row_vectors)
LOAD_COLUMN(load_token, token_elements, token_vectors)

#define LOAD_ROW(row, i) load_row(ROW_AT(row, i), dim - (i))
#define LOAD_TOKEN(token, i) load_token(TOKEN_AT(token, i), dim - (i))
#define STORE_GRAD_WEIGHT(x, n) grad_weights[args.grad_weights_offset + (n)] = (x)

// Every item of the work-group comes here.
shared float space[WG_X];
float SUM_LINE(float x) {
  const uint item = gl_LocalInvocationID.x, lane = item % LANES;
  space[item] = x;
  for (uint width = LANES / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) space[item] += space[item + width];
  }
  barrier();
  const float all = space[item - lane];
  barrier();
  return all;
}

void main() {
#include "operations/moe/rows/dots.h"
}
