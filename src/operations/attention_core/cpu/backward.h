// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/backward and attention/cpu/bf16_backward, from VECTOR_WIDTH, the names
// of backward.def and BF16_DOT, which is 1 for the latter. OpenCL C and the host read this same
// text: the host defines those names as integers in a function and evaluates CPU_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H

#include "operations/attention_core/cpu/panel.h"

// Panels hold keys; a work-item holds ATTN_BLOCK_KEYS of them at a time.
#define ATTN_BLOCK_KEYS (KEY_PANELS * ATTN_LANES)
#define ATTN_BLOCK_WORDS (ATTN_BLOCK_KEYS / ATTN_WORD_FACTORS)

// The factors of a word belong to neighbouring features of q and k and of do and v, to neighbouring
// rows of p and do and of ds and q, and to neighbouring keys of ds and k. Words of keys have a
// place of their own, for all panels; that of ds holds one panel then.
#define ATTN_DS_PANELS (BF16_DOT ? 1 : KEY_PANELS)

// Features of the panels: whole vectors and whole tiles. Vectors of a row of a partial dq. Stride
// of the rows of keys.
#define ATTN_HEAD_SPAN ATTN_CPU_ROUND_UP(ATTN_CPU_ROUND_UP(HEAD_DIM, FEATURES), VECTOR_WIDTH)
#define ATTN_VALUE_SPAN ATTN_CPU_ROUND_UP(ATTN_CPU_ROUND_UP(VALUE_DIM, FEATURES), VECTOR_WIDTH)
#define ATTN_HEAD_WORD_SPAN ATTN_CPU_ROUND_UP(ATTN_WORDS(ATTN_HEAD_SPAN), VECTOR_WIDTH)
#define ATTN_VALUE_WORD_SPAN ATTN_CPU_ROUND_UP(ATTN_WORDS(ATTN_VALUE_SPAN), VECTOR_WIDTH)
#define ATTN_DQ_WIDTH (ATTN_CPU_ROUND_UP(HEAD_DIM, DQ_VECTORS * VECTOR_WIDTH) / VECTOR_WIDTH)
#define ATTN_KEY_STRIDE ATTN_CPU_SPREAD_ROW((ATTN_DQ_WIDTH * VECTOR_WIDTH))

// A packed row: words of features of q and do; with BF16_DOT words of rows, those of q behind an
// even row and those of do behind the odd one; and one float that is NaN where some feature of q or
// do is not finite. Floats are words of features and of rows at once.
#define ATTN_PACKED_GRADIENT ATTN_HEAD_WORD_SPAN
#define ATTN_PACKED_FEATURES (ATTN_HEAD_WORD_SPAN + ATTN_VALUE_WORD_SPAN)
#define ATTN_PACKED_ROWS (ATTN_HEAD_SPAN > ATTN_VALUE_SPAN ? ATTN_HEAD_SPAN : ATTN_VALUE_SPAN)
#define ATTN_PACKED_WILD (ATTN_PACKED_FEATURES + (BF16_DOT ? ATTN_PACKED_ROWS : 0))
#define ATTN_PACKED_STRIDE ATTN_CPU_SPREAD_ROW(ATTN_PACKED_WILD + 1)

// Words of rows: of q, of do, and from those of one word to those of the next. What is asked for
// ahead beside do.
#define ATTN_QUERY_WORDS (BF16_DOT ? ATTN_PACKED_FEATURES : 0)
#define ATTN_GRADIENT_WORDS \
  (BF16_DOT ? ATTN_PACKED_STRIDE + ATTN_PACKED_FEATURES : ATTN_PACKED_GRADIENT)
#define ATTN_ROW_WORDS_STRIDE (ATTN_WORD_FACTORS * ATTN_PACKED_STRIDE)
#define ATTN_PACKED_AHEAD (BF16_DOT ? ATTN_PACKED_FEATURES - ATTN_PACKED_GRADIENT : 0)

// Tiles of query rows in a block.
#define ATTN_QUERY_TILES (BLOCK_Q / QUERY_ROWS)

// Query rows of a work-item of the first and of the last pass.
#define ATTN_CPU_ROW_BLOCK 64

// Scratch, in floats: packed rows [batch, heads, rows, ATTN_PACKED_STRIDE], then partial sums of dq
// [splits, batch, heads, rows, features], where rows is q_len and one tile more: tiles are whole.
#define ATTN_CPU_PADDED_ROWS(q_len) ((q_len) + QUERY_ROWS)
#define ATTN_CPU_PACKED_FLOATS(batch, heads, q_len) \
  ((batch) * (heads)*ATTN_CPU_PADDED_ROWS(q_len) * ATTN_PACKED_STRIDE)
#define ATTN_CPU_PARTIAL_FLOATS(splits, batch, heads, q_len) \
  ((splits) * (batch) * (heads)*ATTN_CPU_PADDED_ROWS(q_len) * ATTN_DQ_WIDTH * VECTOR_WIDTH)

// Bytes on the stack of the thread that runs a work-item of the second pass.
#define ATTN_CPU_PRIVATE_BYTES                                                                  \
  (4 * (ATTN_BLOCK_KEYS *                                                                       \
            (ATTN_HEAD_SPAN + ATTN_HEAD_WORD_SPAN + ATTN_VALUE_SPAN + ATTN_VALUE_WORD_SPAN) +   \
        ATTN_BLOCK_WORDS * ATTN_KEY_STRIDE + KEY_PANELS * VECTOR_WIDTH +                        \
        BLOCK_Q * (ATTN_LANES * (1 + ATTN_DS_PANELS) + (BF16_DOT ? ATTN_BLOCK_WORDS : 0) + 4) + \
        ATTN_QUERY_TILES * 4))

// What the kernels take for granted. The divisors must be positive before this is evaluated.
#define ATTN_CPU_VALID                                                                \
  ((VECTOR_WIDTH == 16 || (!BF16_DOT && (VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8))) && \
   BLOCK_Q % QUERY_ROWS == 0 && QUERY_ROWS % ATTN_WORD_FACTORS == 0 &&                \
   VECTORS % ATTN_WORD_FACTORS == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
