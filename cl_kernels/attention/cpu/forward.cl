// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j]; p[i,:] = softmax of score(q[i] . k[j]) over the visible j; lse[i] = ln sum exp.
// Who      A work-group is one item. It owns BLOCK_Q rows of one (batch, head): ATTN_PANELS panels with a row in every
//          lane.
// Memory   k and v once per BLOCK_Q rows, q once; ATTN_CPU_PRIVATE_BYTES on the stack, which should fit the second
//          cache.
// Numerics Float, keys in order; softmax in base 2 over a whole number per row, so moving it is exact; one rounding.
// Assumes  ATTN_CPU_VALID, contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl
//          flags).
#define BF16_DOT 0
#include "attention/cpu/key_rows.clh"
#include "operations/attention_core/cpu/forward.h"

INLINE floatv multiply_add(floatv a, floatv b, floatv sum) { return fma(a, b, sum); }

INLINE floatv factor_of(floatv words, int n) { return words; }

INLINE void load_queries(PanelRows rows, int first, int last, float factor, floatv (*panel)[VECTORS]) {
  load_panel(rows, first, last, HEAD_DIM, factor, panel);
}

INLINE void convert_key(const global scalar* row, floatv* to) { convert_row(row, HEAD_DIM, to); }

// Returns zeros, or a NaN where a feature is not finite.
INLINE floatv convert_values(KeyRows rows, int row, int last, floatv* to) {
  return convert_row(key_row(rows, min(row, last)), VALUE_DIM, to);
}

INLINE floatv join_weights(const floatv* weight) { return weight[0]; }

#include "attention/cpu/forward.clh"
