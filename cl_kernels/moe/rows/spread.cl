// SPDX-License-Identifier: Apache-2.0
// What     Rows of experts: those of the tokens that have their places there, times their weights; 0 where no token has
// Who      LANES items own a row at a time, an item every LANES-th vector of four of it.
// Memory   Each row once.
// Numerics One product in float at most.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32.
#include "lib/columns.clh"
#include "moe/rows/rows.clh"

#define MAP(row) map[row]
#define LOAD_TOKEN(token, i) load_column(tokens, TOKEN_AT(token, i), dim - (i))
#define STORE_ROW(x, row, i) store_column(x, rows, args.to_offset + (size_t)(row) * args.to_stride + (i), dim - (i))

KERNEL void moe_spread(const global scalar* restrict tokens, const global float* restrict weights,
                       const global int* restrict map, global scalar* restrict rows, const struct MoeRowsArgs args) {
#include "operations/moe/rows/spread.h"
}
