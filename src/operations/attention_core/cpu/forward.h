// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/forward and attention/cpu/bf16_forward, from the names of forward.def
// and BF16_DOT, which is 1 for the latter. OpenCL C and the host read this same text: the host
// defines those names as integers in a function and evaluates CPU_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_H

#include "operations/attention_core/cpu/panel.h"

// Panels hold query rows; a work-item owns ATTN_PANELS of them.
#define ATTN_PANELS (BLOCK_Q / ATTN_LANES)

// The factors of a word belong to neighbouring features of q and k, and to neighbouring keys of p
// and v.
#define ATTN_HEAD_WORDS ATTN_WORDS(HEAD_DIM)
#define ATTN_BLOCK_WORDS (BLOCK_K / ATTN_WORD_FACTORS)

// Rows of the panels of q and o: whole vectors and whole tiles. Strides of the rows of words.
#define ATTN_HEAD_SPAN ATTN_CPU_ROUND_UP(ATTN_HEAD_WORDS, VECTOR_WIDTH)
#define ATTN_VALUE_SPAN ATTN_CPU_ROUND_UP(ATTN_CPU_ROUND_UP(VALUE_DIM, VALUE_COLUMNS), VECTOR_WIDTH)
#define ATTN_KEY_STRIDE ATTN_CPU_SPREAD_ROW(ATTN_HEAD_WORDS)
#define ATTN_VALUE_STRIDE ATTN_CPU_SPREAD_ROW(ATTN_VALUE_SPAN)

// Rows of k and of v that a panel asks for ahead of time, per tile of scores.
#define ATTN_ROWS_AHEAD ((KEY_ROWS + ATTN_PANELS - 1) / ATTN_PANELS)

// Bytes on the stack of the thread that runs a work-item: the panels with five words per row, which
// are padded to vectors, and the tiles.
#define ATTN_CPU_PRIVATE_BYTES                                                          \
  (4 * (BLOCK_Q * (ATTN_HEAD_SPAN + ATTN_VALUE_SPAN + 5) + ATTN_PANELS * VECTOR_WIDTH + \
        BLOCK_K * (ATTN_KEY_STRIDE + ATTN_LANES) + ATTN_BLOCK_WORDS * ATTN_VALUE_STRIDE))

// What the kernel takes for granted. The divisors must be positive before this is evaluated.
#define ATTN_CPU_VALID                                                                \
  ((VECTOR_WIDTH == 16 || (!BF16_DOT && (VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8))) && \
   BLOCK_Q % ATTN_LANES == 0 && BLOCK_K % KEY_ROWS == 0 && KEY_ROWS % ATTN_WORD_FACTORS == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_H
