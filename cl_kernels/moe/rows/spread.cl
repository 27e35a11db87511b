// SPDX-License-Identifier: Apache-2.0
// What     Rows of experts: those of the tokens that have their places there, times their weights; 0 where no token has
// Who      LANES items own a token at a time, and all of its rows, an item every LANES-th vector of them.
// Memory   Each token and each row once.
// Numerics One product in float at most.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32. Scratch has the choice of each row.
#include "moe/rows/rows.clh"
#include "moe/rows/vectors.clh"

// The pass before this one has raised errors.
#undef RAISE
#define RAISE(kind, index)
#define MAP(row) map[row]
#define TO_AT(row, i) (args.to_offset + (size_t)(row) * args.to_stride + (i))
#define LOAD_TOKEN(token, i) LOAD_VECTOR(tokens, TOKEN_AT(token, i), dim - (i))
#define STORE_ROW(x, row, i) STORE_VALUES(x, rows, TO_AT(row, i), dim - (i))
#define COPY_TO_ROW(x, row, i) COPY_VECTOR(x, rows, TO_AT(row, i), dim - (i))

KERNEL void moe_spread(const global int* restrict ids, const global int* restrict slots, const global int* restrict starts,
                       const global scalar* restrict tokens, const global float* restrict weights,
                       const global int* restrict map, global scalar* restrict rows, const struct MoeRowsArgs args) {
#include "operations/moe/rows/spread.h"
}
