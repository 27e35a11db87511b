// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/mma/forward, from WG_X and the names of forward.def. OpenCL C and the host
// read this same text: a host function has those names as unsigned locals, and MMA_ELEMENT_BYTES.
#ifndef TESSERA_OPERATIONS_ATTENTION_MMA_H
#define TESSERA_OPERATIONS_ATTENTION_MMA_H

#define ATTN_MMA_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))

#define ATTN_WARPS (WG_X / 32u)
#define ATTN_WARP_ROWS (BLOCK_Q / ATTN_WARPS)
#define ATTN_ROW_TILES (ATTN_WARP_ROWS / 16u)  // of a warp
#define ATTN_HEAD_STEPS ATTN_MMA_CEIL_DIV(HEAD_DIM, 16u)
// Sixteens of value columns; floats are read in blocks of 128 bytes.
#define ATTN_VALUE_STEPS \
  (MMA_ELEMENT_BYTES / 2u * ATTN_MMA_CEIL_DIV(VALUE_DIM, 8u * MMA_ELEMENT_BYTES))
#define ATTN_KEY_STEPS (BLOCK_K / 16u)

// Bytes of a row in local memory: a multiple of eight chunks of 16 bytes. Chunk c of row r is
// stored at c ^ r % 8, so that eight rows of a column of chunks lie in different banks.
#define ATTN_HEAD_PITCH (128u * ATTN_MMA_CEIL_DIV(HEAD_DIM * MMA_ELEMENT_BYTES, 128u))
#define ATTN_VALUE_PITCH (128u * ATTN_MMA_CEIL_DIV(VALUE_DIM * MMA_ELEMENT_BYTES, 128u))

// Local memory: [queries][keys of each stage][values of each stage], at last [outputs].
#define ATTN_K_BYTES (BLOCK_K * ATTN_HEAD_PITCH)
#define ATTN_V_BYTES (BLOCK_K * ATTN_VALUE_PITCH)
#define ATTN_K_START (BLOCK_Q * ATTN_HEAD_PITCH)
#define ATTN_V_START (ATTN_K_START + STAGES * ATTN_K_BYTES)
#define ATTN_MMA_INPUT_BYTES (ATTN_V_START + STAGES * ATTN_V_BYTES)
#define ATTN_MMA_OUTPUT_BYTES (BLOCK_Q * ATTN_VALUE_PITCH)
#define ATTN_MMA_LOCAL_BYTES \
  (ATTN_MMA_INPUT_BYTES > ATTN_MMA_OUTPUT_BYTES ? ATTN_MMA_INPUT_BYTES : ATTN_MMA_OUTPUT_BYTES)

// 32-bit registers of an item: scores, outputs, queries that stay; the rest is taken by rows,
// blocks on their way to a product and addresses.
#define ATTN_MMA_REGISTERS (ATTN_ROW_TILES * (BLOCK_K / 2u + ATTN_VALUE_STEPS * 8u + KEEP_Q * 4u))
#define ATTN_MMA_MOST_REGISTERS 208u

#define ATTN_MMA_VALID                                                                             \
  (WG_X % 64u == 0u && WG_X >= 64u && WG_X <= 256u && (BLOCK_Q == WG_X / 2u || BLOCK_Q == WG_X) && \
   BLOCK_K % 16u == 0u && BLOCK_K > 0u && STAGES >= 1u && STAGES <= 2u &&                          \
   KEEP_Q <= (MMA_ELEMENT_BYTES == 2u ? ATTN_HEAD_STEPS : 0u))

#endif  // TESSERA_OPERATIONS_ATTENTION_MMA_H
