// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/forward and attention/cpu/bf16_forward, from the names of forward.def
// and BF16_DOT, which is 1 for the latter. OpenCL C and the host read this same text: the host
// defines those names as integers in a function and evaluates CPU_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_H

#include "operations/attention_core/cpu/panel.h"

// Panels hold query rows; a work-item owns PANELS of them.
#define PANELS (BLOCK_Q / LANES)

// The factors of the products lie in words of 32 bits: one float or, with BF16_DOT, two bfloat16
// whose products are summed up. They belong to neighbouring features of q and k, and to
// neighbouring keys of p and v.
#define WORD_FACTORS (BF16_DOT ? 2 : 1)
#define HEAD_WORDS ((HEAD_DIM + WORD_FACTORS - 1) / WORD_FACTORS)
#define BLOCK_WORDS (BLOCK_K / WORD_FACTORS)

// Rows of the panels of q and o: whole vectors and whole tiles. Strides of the rows of words.
#define HEAD_SPAN CPU_ROUND_UP(HEAD_WORDS, VECTOR_WIDTH)
#define VALUE_SPAN CPU_ROUND_UP(CPU_ROUND_UP(VALUE_DIM, VALUE_COLUMNS), VECTOR_WIDTH)
#define KEY_STRIDE CPU_SPREAD_ROW(HEAD_WORDS)
#define VALUE_STRIDE CPU_SPREAD_ROW(VALUE_SPAN)

// Rows of k and of v that a panel asks for ahead of time, per tile of scores.
#define ROWS_AHEAD ((KEY_ROWS + PANELS - 1) / PANELS)

// Bytes on the stack of the thread that runs a work-item: the panels with five words per row, which
// are padded to vectors, and the tiles.
#define CPU_PRIVATE_BYTES                                                \
  (4 * (BLOCK_Q * (HEAD_SPAN + VALUE_SPAN + 5) + PANELS * VECTOR_WIDTH + \
        BLOCK_K * (KEY_STRIDE + LANES) + BLOCK_WORDS * VALUE_STRIDE))

// What the kernel takes for granted. The divisors must be positive before this is evaluated.
#define CPU_VALID                                                                     \
  ((VECTOR_WIDTH == 16 || (!BF16_DOT && (VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8))) && \
   BLOCK_Q % LANES == 0 && BLOCK_K % KEY_ROWS == 0 && KEY_ROWS % WORD_FACTORS == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_H
