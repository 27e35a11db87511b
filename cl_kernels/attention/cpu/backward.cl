// SPDX-License-Identifier: Apache-2.0
// What     dv[j] = sum_i p[i,j] do[i]; dq[i] = scale sum_j ds[i,j] k[j]; dk[j] = scale sum_i ds[i,j] q[i], where
//          ds[i,j] = p[i,j] (do[i] . v[j] - delta[i]) score'(i,j), delta[i] = do[i] . o[i]; p comes back from lse.
// Who      A work-group is one item. It owns every splits-th block of ATTN_BLOCK_KEYS keys of one (batch, kv head), as
//          panels with a key in every lane.
// Memory   k, v, dk, dv once; packed q and do, partial dq once per block of keys; ATTN_CPU_PRIVATE_BYTES on the stack.
// Numerics Float; queries and splits in order, no atomics: the same bits on any number of threads. One rounding.
// Assumes  ATTN_CPU_VALID, contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl
//          flags).
#define BF16_DOT 0
#include "attention/cpu/backward_block.clh"

INLINE floatv multiply_add(floatv a, floatv b, floatv sum) { return fma(a, b, sum); }

INLINE floatv factor_of(floatv words, int n) { return words; }

INLINE void load_features(PanelRows rows, int first, int last, int features, float factor, floatv (*panel)[VECTORS]) {
  load_panel(rows, first, last, features, factor, panel);
}

// Returns zeros, or a NaN where a feature is not finite.
INLINE floatv convert_keys(PanelRows rows, int key, int last, floatv* to) {
  return convert_row(panel_row(rows, key), HEAD_DIM, to);
}

INLINE void join_tile(Block* block, int row, const Meeting* at) {}

INLINE void clear_keys(Block* block, int row, int panel) {
  for (int j = 0; j < VECTORS; ++j) block->ds[row][panel][j] = 0.0f;
}

INLINE const float* key_weights(const Block* block, int row) { return (const float*)block->ds[row]; }

#include "attention/cpu/backward.clh"
