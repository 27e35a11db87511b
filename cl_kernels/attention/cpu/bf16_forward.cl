// SPDX-License-Identifier: Apache-2.0
// What     As attention/cpu/forward.cl.
// Who      As attention/cpu/forward.cl.
// Memory   As attention/cpu/forward.cl.
// Numerics As attention/cpu/forward.cl, but the factors of products are bfloat16: the weights, at most 2^0.5, are
//          rounded to it for the second product, though not for their sums, and subnormal factors count for 0.
// Assumes  As attention/cpu/forward.cl; DTYPE_BF16, VECTOR_WIDTH = 16, a CPU with AVX512_BF16.
#define BF16_DOT 1
#include "attention/cpu/bf16_words.clh"
#include "attention/cpu/key_rows.clh"
#include "operations/attention_core/cpu/forward.h"

INLINE void load_queries(PanelRows rows, int first, int last, float factor, floatv (*panel)[VECTORS]) {
  load_word_panel(rows, first, last, HEAD_DIM, panel);
}

INLINE void convert_key(const global scalar* row, floatv* to) {
  for (int n = 0; n < ATTN_HEAD_WORDS; n += VECTOR_WIDTH) to[n / VECTOR_WIDTH] = load_words(row, HEAD_DIM, n);
}

// Two rows from `row` on, or `last` if it comes before: pairs of a feature. Returns zeros, or a NaN where a feature is
// not finite.
INLINE floatv convert_values(KeyRows rows, int row, int last, floatv* to) {
  return join_rows(key_row(rows, min(row, last)), key_row(rows, min(row + 1, last)), VALUE_DIM, to);
}

// Rounds the weights of an even key and the odd one after it.
INLINE floatv join_weights(const floatv* weight) { return join_numbers(weight[0], weight[1]); }

#include "attention/cpu/forward.clh"
