// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu_backward, from VECTOR_WIDTH and the names of cpu_backward.def. OpenCL C
// and the host read this same text: the host defines those names as integers in a function and
// evaluates CPU_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H

#include "operations/attention/cpu_panel.h"

// Panels hold keys; a work-item holds BLOCK_KEYS of them at a time.
#define BLOCK_KEYS (KEY_PANELS * LANES)

// Features of the panels: whole vectors and whole tiles. Vectors of a row of a partial dq. Strides
// of the rows of floats.
#define HEAD_SPAN CPU_ROUND_UP(CPU_ROUND_UP(HEAD_DIM, FEATURES), VECTOR_WIDTH)
#define VALUE_SPAN CPU_ROUND_UP(CPU_ROUND_UP(VALUE_DIM, FEATURES), VECTOR_WIDTH)
#define DQ_WIDTH (CPU_ROUND_UP(HEAD_DIM, DQ_VECTORS * VECTOR_WIDTH) / VECTOR_WIDTH)
#define QUERY_STRIDE CPU_SPREAD_ROW(HEAD_SPAN)
#define GRADIENT_STRIDE CPU_SPREAD_ROW(VALUE_SPAN)
#define KEY_STRIDE CPU_SPREAD_ROW((DQ_WIDTH * VECTOR_WIDTH))

// Tiles of query rows in a block, and rows that a panel asks for ahead of time, per tile.
#define QUERY_TILES (BLOCK_Q / QUERY_ROWS)
#define ROWS_AHEAD ((QUERY_ROWS + KEY_PANELS - 1) / KEY_PANELS)

// Query rows of a work-item of the first and of the last pass.
#define CPU_ROW_BLOCK 64

// Scratch, in floats: delta [batch, heads, q_len], and partial sums of dq [splits, batch, heads,
// rows, features], where rows is q_len and one tile more: a tile may write there, nobody reads it.
#define CPU_DELTA_FLOATS(batch, heads, q_len) ((batch) * (heads) * (q_len))
#define CPU_PARTIAL_ROWS(q_len) ((q_len) + QUERY_ROWS)
#define CPU_PARTIAL_FLOATS(splits, batch, heads, q_len) \
  ((splits) * (batch) * (heads)*CPU_PARTIAL_ROWS(q_len) * DQ_WIDTH * VECTOR_WIDTH)

// Bytes on the stack of the thread that runs a work-item of the second pass.
#define CPU_PRIVATE_BYTES                                                                        \
  (4 * (BLOCK_KEYS * (2 * HEAD_SPAN + 2 * VALUE_SPAN + KEY_STRIDE) + KEY_PANELS * VECTOR_WIDTH + \
        BLOCK_Q * (QUERY_STRIDE + GRADIENT_STRIDE + LANES + BLOCK_KEYS + 4) + QUERY_TILES * 4))

// What the kernels take for granted. The divisors must be positive before this is evaluated.
#define CPU_VALID \
  ((VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8 || VECTOR_WIDTH == 16) && BLOCK_Q % QUERY_ROWS == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
