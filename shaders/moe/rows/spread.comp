// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/rows/spread.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moe/rows/rows.glsl"

layout(std430, binding = 0) readonly buffer Ids { int ids[]; };
layout(std430, binding = 1) readonly buffer Slots { int slots[]; };
layout(std430, binding = 2) readonly buffer Starts { int starts[]; };
layout(std430, binding = 3) readonly buffer Tokens { scalar token_elements[]; };
layout(std430, binding = 3) readonly buffer TokenVectors { scalar4 token_vectors[]; };
layout(std430, binding = 4) readonly buffer Weights { float weights[]; };
layout(std430, binding = 5) readonly buffer Scratch { int map[]; };
layout(std430, binding = 6) writeonly buffer Rows { scalar row_elements[]; };
layout(std430, binding = 6) writeonly buffer RowVectors { scalar4 row_vectors[]; };
PUSH_ARGS(MoeRowsArgs);
LOAD_COLUMN(load_token, token_elements, token_vectors)
STORE_COLUMN(store_row, row_elements, row_vectors)

// The pass before this one has raised errors.
#undef RAISE
#define RAISE(kind, index)
#define MAP(row) map[row]
#define LOAD_TOKEN(token, i) load_token(TOKEN_AT(token, i), dim - (i))
#define STORE_ROW(x, row, i) store_row(x, args.to_offset + (row) * args.to_stride + (i), dim - (i))
#define COPY_TO_ROW(x, row, i) STORE_ROW(x, row, i)

void main() {
#include "operations/moe/rows/spread.h"
}
