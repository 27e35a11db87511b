// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cpu/decode, from the names of decode.def. OpenCL C and
// the host read this same text: the host defines those names as integers in a function and
// evaluates DECODE_... there.
#ifndef TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H

// Vectors that cover a row. The last one begins where it ends with the row, so it may overlap.
#define HEAD_VECTORS ((HEAD_DIM + VECTOR_WIDTH - 1) / VECTOR_WIDTH)
#define VALUE_VECTORS ((VALUE_DIM + VECTOR_WIDTH - 1) / VECTOR_WIDTH)

// A tile of scores has TILE_HEADS x TILE_ROWS x TILE_KEYS of them, one per lane of a vector. A tile
// of outputs has TILE_ROWS x TILE_COLUMNS vectors; columns past the last one repeat it.
#define TILE_ROWS (VECTOR_WIDTH / (TILE_KEYS * TILE_HEADS))
#define TILE_COLUMNS (COLUMNS < VALUE_VECTORS ? COLUMNS : VALUE_VECTORS)
#define VALUE_SPAN ((VALUE_VECTORS + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS)

// Keys whose scores a head takes in its turn: whole tiles.
#define KEY_TURN (TURN < TILE_KEYS ? TILE_KEYS : TURN)

// Bytes on the stack of the thread that runs a work-item.
#define DECODE_PRIVATE_BYTES \
  (4 * ROWS * (HEADS * (VECTOR_WIDTH * (HEAD_VECTORS + VALUE_SPAN + 1) + BLOCK_K + 16) + 2))

// What the kernel takes for granted. The divisors must be positive before this is evaluated.
#define DECODE_VALID                                                                   \
  ((VECTOR_WIDTH == 4 || VECTOR_WIDTH == 8 || VECTOR_WIDTH == 16) && TILE_KEYS >= 2 && \
   VECTOR_WIDTH % (TILE_KEYS * TILE_HEADS) == 0 && HEADS % TILE_HEADS == 0 &&          \
   ROWS % TILE_ROWS == 0 && KEY_TURN % TILE_KEYS == 0 && BLOCK_K % KEY_TURN == 0 &&    \
   BLOCK_K % TURN == 0 && BLOCK_K % VECTOR_WIDTH == 0)

#endif  // TESSERA_OPERATIONS_ATTENTION_CPU_DECODE_H
