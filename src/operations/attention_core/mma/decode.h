// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/mma/decode, from WG_X and the names of decode.def. OpenCL C and the host
// read this same text: a host function has those names as unsigned locals, and ATTN_KEY_BITS.
#ifndef TESSERA_OPERATIONS_ATTENTION_MMA_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_MMA_DECODE_H

#define ATTN_FEW_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_FEW_MIN(a, b) ((a) < (b) ? (a) : (b))

#define ATTN_FEW_WARPS (WG_X / 32u)
#define ATTN_FEW_KEYS 16u                               // of a warp and a step
#define ATTN_FEW_STEP (ATTN_FEW_KEYS * ATTN_FEW_WARPS)  // keys of a group and a step
#define ATTN_FEW_ROW_TILES (ROWS / 8u)

// Features that an item reads at once: 16 bytes, or less where a row's share of four items (of a
// key) or of eight (of a value) is less.
#define ATTN_FEW_SHARE(dim, items) \
  ((dim) > 16u * (items) ? 32u : (dim) > 8u * (items) ? 16u : (dim) > 4u * (items) ? 8u : 4u)
#define ATTN_FEW_KEY_PART \
  ATTN_FEW_MIN(128u / ATTN_KEY_BITS, ATTN_FEW_SHARE(HEAD_DIM, 4u))  // at least 8
#define ATTN_FEW_VALUE_PART ATTN_FEW_MIN(128u / ATTN_KEY_BITS, ATTN_FEW_SHARE(VALUE_DIM, 8u))
#define ATTN_FEW_KEY_PARTS ATTN_FEW_CEIL_DIV(HEAD_DIM, (4u * ATTN_FEW_KEY_PART))
#define ATTN_FEW_VALUE_PARTS ATTN_FEW_CEIL_DIV(VALUE_DIM, (8u * ATTN_FEW_VALUE_PART))
#define ATTN_FEW_KEY_WORDS (ATTN_FEW_KEY_PART * ATTN_KEY_BITS / 32u)
#define ATTN_FEW_VALUE_WORDS (ATTN_FEW_VALUE_PART * ATTN_KEY_BITS / 32u)
#define ATTN_FEW_HEAD_STEPS (ATTN_FEW_KEY_PARTS * ATTN_FEW_KEY_PART / 4u)  // sixteens of features
// Sixteens of value columns. An item has two of each: columns 2 t and 2 t + 1 of one of its parts.
#define ATTN_FEW_VALUE_TILES (ATTN_FEW_VALUE_PARTS * ATTN_FEW_VALUE_PART / 2u)

// Local memory in floats: {sums of each warp and row}, {maximum, total} of each warp and row.
#define ATTN_FEW_SPAN (16u * ATTN_FEW_VALUE_TILES + 4u)
#define ATTN_FEW_SUMS (ATTN_FEW_WARPS * ROWS * ATTN_FEW_SPAN)
#define ATTN_FEW_LOCAL_BYTES (4u * (ATTN_FEW_SUMS + 2u * ATTN_FEW_WARPS * ROWS + 4u))

// 32-bit registers of an item that hold keys, values, queries and sums.
#define ATTN_FEW_REGISTERS                            \
  (2u * ATTN_FEW_KEY_PARTS * ATTN_FEW_KEY_WORDS +     \
   4u * ATTN_FEW_VALUE_PARTS * ATTN_FEW_VALUE_WORDS + \
   ATTN_FEW_ROW_TILES * (2u * ATTN_FEW_HEAD_STEPS + 4u * ATTN_FEW_VALUE_TILES))
#define ATTN_FEW_MOST_REGISTERS 176u

#define ATTN_FEW_VALID                                                               \
  (WG_X % 32u == 0u && WG_X >= 32u && WG_X <= 256u && (ROWS == 8u || ROWS == 16u) && \
   HEAD_DIM % ATTN_FEW_KEY_PART == 0u && VALUE_DIM % ATTN_FEW_VALUE_PART == 0u &&    \
   HEAD_DIM >= 32u && VALUE_DIM >= 32u && ATTN_FEW_REGISTERS <= ATTN_FEW_MOST_REGISTERS)

#endif  // TESSERA_OPERATIONS_ATTENTION_MMA_DECODE_H
