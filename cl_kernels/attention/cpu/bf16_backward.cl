// SPDX-License-Identifier: Apache-2.0
// What     As attention/cpu/backward.cl.
// Who      As attention/cpu/backward.cl.
// Memory   As attention/cpu/backward.cl, packed q and do twice, in words.
// Numerics As attention/cpu/backward.cl, but the factors of products are bfloat16: p, with dropout, and ds are rounded to
//          it for the products that follow, and subnormal factors count for 0.
// Assumes  As attention/cpu/backward.cl; DTYPE_BF16, VECTOR_WIDTH = 16, a CPU with AVX512_BF16.
#define BF16_DOT 1
#include "attention/cpu/bf16_words.clh"
#include "attention/cpu/backward_block.clh"

INLINE void load_features(PanelRows rows, int first, int last, int features, float factor, floatv (*panel)[VECTORS]) {
  load_word_panel(rows, first, last, features, panel);
}

// `key` and the one after it, or twice `last`. Returns zeros, or a NaN where a feature is not finite.
INLINE floatv convert_keys(PanelRows rows, int key, int last, floatv* to) {
  return join_rows(panel_row(rows, key), panel_row(rows, min(key + 1, last)), HEAD_DIM, to);
}

// Rounds p and ds of a tile of a panel. The words of rows go where numbers of rows before them were, which nobody needs any
// more.
INLINE void join_tile(Block* block, int row, const Meeting* at) {
  UNROLL for (int i = row; i < row + QUERY_ROWS; i += 2) {
    UNROLL for (int r = i; r < i + 2; ++r)
      UNROLL for (int j = 0; j < VECTORS; j += 2)
        block->ds_words[r][at->panel][j / 2] = join_lanes(block->ds[r][at->ds][j], block->ds[r][at->ds][j + 1]);
    UNROLL for (int j = 0; j < VECTORS; ++j) {
      block->p[i / 2][j] = join_numbers(block->p[i][j], block->p[i + 1][j]);
      block->ds[i / 2][at->ds][j] = join_numbers(block->ds[i][at->ds][j], block->ds[i + 1][at->ds][j]);
    }
  }
}

INLINE void clear_keys(Block* block, int row, int panel) {
  for (int j = 0; j < VECTORS / 2; ++j) block->ds_words[row][panel][j] = 0.0f;
}

INLINE const float* key_weights(const Block* block, int row) { return (const float*)block->ds_words[row]; }

#include "attention/cpu/backward.clh"
