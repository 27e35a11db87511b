// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/mma/forward, from WG_X and the names of forward.def. OpenCL C and the host
// read this same text: a host function has those names as unsigned locals, and MMA_ELEMENT_BYTES.
#ifndef TESSERA_OPERATIONS_ATTENTION_MMA_H
#define TESSERA_OPERATIONS_ATTENTION_MMA_H

#define MMA_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))

#define WARPS (WG_X / 32u)
#define WARP_ROWS (BLOCK_Q / WARPS)
#define ROW_TILES (WARP_ROWS / 16u)  // of a warp
#define HEAD_STEPS MMA_CEIL_DIV(HEAD_DIM, 16u)
// Sixteens of value columns; floats are read in blocks of 128 bytes.
#define VALUE_STEPS (MMA_ELEMENT_BYTES / 2u * MMA_CEIL_DIV(VALUE_DIM, 8u * MMA_ELEMENT_BYTES))
#define KEY_STEPS (BLOCK_K / 16u)

// Bytes of a row in local memory: a multiple of eight chunks of 16 bytes. Chunk c of row r is
// stored at c ^ r % 8, so that eight rows of a column of chunks lie in different banks.
#define HEAD_PITCH (128u * MMA_CEIL_DIV(HEAD_DIM * MMA_ELEMENT_BYTES, 128u))
#define VALUE_PITCH (128u * MMA_CEIL_DIV(VALUE_DIM * MMA_ELEMENT_BYTES, 128u))

// Local memory: [queries][keys of each stage][values of each stage], at last [outputs].
#define K_BYTES (BLOCK_K * HEAD_PITCH)
#define V_BYTES (BLOCK_K * VALUE_PITCH)
#define K_START (BLOCK_Q * HEAD_PITCH)
#define V_START (K_START + STAGES * K_BYTES)
#define MMA_INPUT_BYTES (V_START + STAGES * V_BYTES)
#define MMA_OUTPUT_BYTES (BLOCK_Q * VALUE_PITCH)
#define MMA_LOCAL_BYTES (MMA_INPUT_BYTES > MMA_OUTPUT_BYTES ? MMA_INPUT_BYTES : MMA_OUTPUT_BYTES)

// What a work-group may have on every GPU from sm_80 on. OpenCL reports less: its number is for
// local arguments.
#define MMA_MOST_LOCAL_BYTES (99u * 1024u)

// 32-bit registers of an item: scores, outputs, queries that stay; the rest is taken by rows,
// blocks on their way to a product and addresses.
#define MMA_REGISTERS (ROW_TILES * (BLOCK_K / 2u + VALUE_STEPS * 8u + KEEP_Q * 4u))
#define MMA_MOST_REGISTERS 208u

#define MMA_VALID                                                                                  \
  (WG_X % 64u == 0u && WG_X >= 64u && WG_X <= 256u && (BLOCK_Q == WG_X / 2u || BLOCK_Q == WG_X) && \
   BLOCK_K % 16u == 0u && BLOCK_K > 0u && STAGES >= 1u && STAGES <= 2u &&                          \
   KEEP_Q <= (MMA_ELEMENT_BYTES == 2u ? HEAD_STEPS : 0u))

#endif  // TESSERA_OPERATIONS_ATTENTION_MMA_H
