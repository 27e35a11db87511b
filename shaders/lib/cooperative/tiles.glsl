// SPDX-License-Identifier: Apache-2.0
// Tiles of BLOCK_M by BLOCK_N, GROUP_M by GROUP_N of one by a sub-group: where its sums are, and how they leave. A kernel brings
//   finish(row, column, x)          what becomes of four sums of a row
//   is_plain()                      whether those of the tile become elements of DTYPE and nothing else, rows of vectors of eight;
//                                   the same for all items
//   finish_plain(row, column, low, high)   stores a vector of them
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#ifndef TESSERA_LIB_COOPERATIVE_TILES_GLSL
#define TESSERA_LIB_COOPERATIVE_TILES_GLSL
#include "lib/cooperative/element.glsl"
#define STORAGE16 1
#include "lib/prelude.glsl"
#include "operations/common/cooperative_tiles.def"
#include "operations/common/cooperative_tiles.h"
#include "lib/cooperative/products.glsl"

void finish(uint row, uint column, vec4 x);
bool is_plain();
void finish_plain(uint row, uint column, vec4 low, vec4 high);

shared uvec4 memory[COOPERATIVE_AREA];
COOPERATIVE_SUM sum[COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES];
// The tile begins at row0 and column0; rows and columns from `rows` and `columns` on are not the result's.
uint item, row0, column0, group_row, group_column, rows, columns;

// What of the tile is an item's own.
void find_item() {
  item = gl_SubgroupID * LANES + gl_SubgroupInvocationID;
  group_row = gl_SubgroupID / (BLOCK_N / GROUP_N) * GROUP_M;
  group_column = gl_SubgroupID % (BLOCK_N / GROUP_N) * GROUP_N;
}

void begin_sums() {
  [[unroll]] for (uint i = 0u; i < COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES; ++i) sum[i] = COOPERATIVE_SUM(0.0);
}

void finish_sums() {
  barrier();
  const uint own = gl_SubgroupID * COOPERATIVE_OWN_AREA;
  const bool plain = is_plain();
  // One round of code for all, for what follows is long. Matrices are never looked up, not even by a number that is compared
  // with a constant, for then NVIDIA's driver keeps all of them in memory: the first ones are stored, the others move up.
  [[dont_unroll]] for (uint round = 0u; round < COOPERATIVE_ROW_TILES; ++round) {
    [[unroll]] for (uint i = 0u; i < COOPERATIVE_COLUMN_TILES; ++i)
      coopMatStore(sum[i], memory, own + i * MATRIX_N / 4u, COOPERATIVE_OWN_STRIDE, kRowMajor);
    [[unroll]] for (uint i = COOPERATIVE_COLUMN_TILES; i < COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES; ++i)
      sum[i - COOPERATIVE_COLUMN_TILES] = sum[i];
    subgroupBarrier();
    const uint first_row = row0 + group_row + round * MATRIX_M, first_column = column0 + group_column;
    if (plain) {
      [[unroll]] for (uint at = gl_SubgroupInvocationID; at < MATRIX_M * GROUP_N / 8u; at += LANES) {
        const uint line = at / (GROUP_N / 8u), vector = at % (GROUP_N / 8u), from = own + line * COOPERATIVE_OWN_STRIDE + 2u * vector;
        if (first_row + line < rows && first_column + 8u * vector < columns)
          finish_plain(first_row + line, first_column + 8u * vector, uintBitsToFloat(memory[from]), uintBitsToFloat(memory[from + 1u]));
      }
    } else {
      [[dont_unroll]] for (uint at = gl_SubgroupInvocationID; at < MATRIX_M * GROUP_N / 4u; at += LANES) {
        const uint line = at / (GROUP_N / 4u), vector = at % (GROUP_N / 4u);
        const uint row = first_row + line, column = first_column + 4u * vector;
        if (row < rows && column < columns)
          finish(row, column, uintBitsToFloat(memory[own + line * COOPERATIVE_OWN_STRIDE + vector]));
      }
    }
    subgroupBarrier();
  }
}

#endif  // TESSERA_LIB_COOPERATIVE_TILES_GLSL
