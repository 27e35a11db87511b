// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/decode, from CODES and the names of decode.def. OpenCL C and
// the host read this same text: the host defines those names as integers in a function and
// evaluates DECODE_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H

// Vectors that cover a row. The last one begins where it ends with the row, so it may overlap.
#define ATTN_HEAD_VECTORS ((HEAD_DIM + VECTOR_WIDTH - 1) / VECTOR_WIDTH)
#define ATTN_VALUE_VECTORS ((VALUE_DIM + VECTOR_WIDTH - 1) / VECTOR_WIDTH)

// A tile of scores has TILE_HEADS x ATTN_TILE_ROWS x TILE_KEYS of them, one per lane of a vector. A
// tile of outputs has ATTN_TILE_ROWS x ATTN_TILE_COLUMNS vectors; columns past the last one repeat
// it.
#define ATTN_TILE_ROWS (VECTOR_WIDTH / (TILE_KEYS * TILE_HEADS))
#define ATTN_TILE_COLUMNS (COLUMNS < ATTN_VALUE_VECTORS ? COLUMNS : ATTN_VALUE_VECTORS)
#define ATTN_VALUE_SPAN \
  ((ATTN_VALUE_VECTORS + ATTN_TILE_COLUMNS - 1) / ATTN_TILE_COLUMNS * ATTN_TILE_COLUMNS)

// Keys whose scores a head takes in its turn: whole tiles.
#define ATTN_KEY_TURN (TURN < TILE_KEYS ? TILE_KEYS : TURN)

// Bytes on the stack of the thread that runs a work-item.
#define ATTN_DECODE_PRIVATE_BYTES                                                                \
  (4 * ROWS *                                                                                    \
       (HEADS * (VECTOR_WIDTH * (ATTN_HEAD_VECTORS + ATTN_VALUE_SPAN + 1) + BLOCK_K + 16) + 2) + \
   (CODES ? 8 * HEADS * BLOCK_K : 0))

// What the kernel takes for granted. The divisors must be positive before this is evaluated.
#define ATTN_DECODE_VALID                                                                          \
  ((VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8 || VECTOR_WIDTH == 16) && TILE_KEYS >= 2 &&             \
   VECTOR_WIDTH % (TILE_KEYS * TILE_HEADS) == 0 && HEADS % TILE_HEADS == 0 &&                      \
   ROWS % ATTN_TILE_ROWS == 0 && ATTN_KEY_TURN % TILE_KEYS == 0 && BLOCK_K % ATTN_KEY_TURN == 0 && \
   BLOCK_K % TURN == 0 && BLOCK_K % VECTOR_WIDTH == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H
