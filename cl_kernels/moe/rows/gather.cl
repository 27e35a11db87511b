// SPDX-License-Identifier: Apache-2.0
// What     Rows of tokens: the sums of the rows of their experts times their weights; what is wrong with choices
// Who      LANES items own a token at a time, an item every LANES-th vector of it.
// Memory   Each row once.
// Numerics Float, choices in order. Rows of weight 0 are not read.
// Assumes  Fewer than 2^31 rows and choices; offsets and strides below 2^32.
#include "moe/rows/rows.clh"
#include "moe/rows/vectors.clh"

#define LOAD_ROW(row, i) LOAD_VECTOR(rows, ROW_AT(row, i), dim - (i))
#define STORE_TOKEN(x, token, i) STORE_VALUES(x, tokens, TOKEN_AT(token, i), dim - (i))

KERNEL void moe_gather(const global int* restrict ids, const global int* restrict slots,
                       const global int* restrict starts, const global float* restrict weights,
                       const global scalar* restrict rows, global scalar* restrict tokens,
                       volatile global uint* errors, const struct MoeRowsArgs args) {
#include "operations/moe/rows/gather.h"
}
