// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/backward, from VECTOR_WIDTH and the names of backward.def. OpenCL C
// and the host read this same text: the host defines those names as integers in a function and
// evaluates CPU_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H

#include "operations/attention_core/cpu/panel.h"

// Panels hold keys; a work-item holds ATTN_BLOCK_KEYS of them at a time.
#define ATTN_BLOCK_KEYS (KEY_PANELS * ATTN_LANES)

// Features of the panels: whole vectors and whole tiles. Vectors of a row of a partial dq. Stride
// of the rows of keys.
#define ATTN_HEAD_SPAN ATTN_CPU_ROUND_UP(ATTN_CPU_ROUND_UP(HEAD_DIM, FEATURES), VECTOR_WIDTH)
#define ATTN_VALUE_SPAN ATTN_CPU_ROUND_UP(ATTN_CPU_ROUND_UP(VALUE_DIM, FEATURES), VECTOR_WIDTH)
#define ATTN_DQ_WIDTH (ATTN_CPU_ROUND_UP(HEAD_DIM, DQ_VECTORS * VECTOR_WIDTH) / VECTOR_WIDTH)
#define ATTN_KEY_STRIDE ATTN_CPU_SPREAD_ROW((ATTN_DQ_WIDTH * VECTOR_WIDTH))

// A packed row: q, do, and one float that is NaN where some feature of them is not finite.
#define ATTN_PACKED_GRADIENT ATTN_HEAD_SPAN
#define ATTN_PACKED_WILD (ATTN_HEAD_SPAN + ATTN_VALUE_SPAN)
#define ATTN_PACKED_STRIDE ATTN_CPU_SPREAD_ROW(ATTN_HEAD_SPAN + ATTN_VALUE_SPAN + 1)

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
#define ATTN_CPU_PRIVATE_BYTES                                                           \
  (4 * (ATTN_BLOCK_KEYS * (2 * ATTN_HEAD_SPAN + 2 * ATTN_VALUE_SPAN + ATTN_KEY_STRIDE) + \
        KEY_PANELS * VECTOR_WIDTH + BLOCK_Q * (ATTN_LANES + ATTN_BLOCK_KEYS + 4) +       \
        ATTN_QUERY_TILES * 4))

// What the kernels take for granted. The divisors must be positive before this is evaluated.
#define ATTN_CPU_VALID \
  ((VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8 || VECTOR_WIDTH == 16) && BLOCK_Q % QUERY_ROWS == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_BACKWARD_H
