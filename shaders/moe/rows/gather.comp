// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/gather.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moe/rows/rows.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) readonly buffer Slots { int slots[]; };
layout(std430, binding = 2) readonly buffer Starts { int starts[]; };
layout(std430, binding = 3) readonly buffer Weights { float weights[]; };
layout(std430, binding = 4) readonly buffer Rows { scalar row_elements[]; };
layout(std430, binding = 4) readonly buffer RowVectors { scalar4 row_vectors[]; };
layout(std430, binding = 5) writeonly buffer Tokens { scalar token_elements[]; };
layout(std430, binding = 5) writeonly buffer TokenVectors { scalar4 token_vectors[]; };
layout(std430, binding = 6) buffer Errors { uint errors[]; };
PUSH_ARGS(MoeRowsArgs);
LOAD_COLUMN(load_row, row_elements, row_vectors)
STORE_COLUMN(store_token, token_elements, token_vectors)

#define LOAD_ROW(row, i) load_row(ROW_AT(row, i), dim - (i))
#define STORE_TOKEN(x, token, i) store_token(x, TOKEN_AT(token, i), dim - (i))

void main() {
#include "operations/moe/rows/gather.h"
}
