// SPDX-License-Identifier: Apache-2.0
// Tiles of matmul/mma/product in local memory, from WG_X, the names of mma.def and
// MMA_ELEMENT_BYTES: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_MMA_GEOMETRY_H
#define TESSERA_OPERATIONS_MATMUL_CORE_MMA_GEOMETRY_H

#define MATMUL_MMA_WARPS_N (BLOCK_N / WARP_N)
#define MATMUL_MMA_WARPS (BLOCK_M / WARP_M * MATMUL_MMA_WARPS_N)
// A line is what is contiguous in memory: terms of a row or column, or rows or columns of a term.
#define MATMUL_MMA_TERMS (128u / MMA_ELEMENT_BYTES)
#define MATMUL_MMA_LINE(by_terms, block) \
  ((by_terms) || (block)*MMA_ELEMENT_BYTES < 128u ? 128u : (block)*MMA_ELEMENT_BYTES)
#define MATMUL_MMA_LINES(by_terms, block) ((by_terms) ? (block) : MATMUL_MMA_TERMS)
#define MATMUL_MMA_BYTES(by_terms, block) \
  (MATMUL_MMA_LINE(by_terms, block) * MATMUL_MMA_LINES(by_terms, block))
// The same or more, whichever way the operands lie.
#define MATMUL_MMA_MOST_BYTES(block) \
  ((block)*MMA_ELEMENT_BYTES < 128u ? 128u * MATMUL_MMA_TERMS : 128u * (block))
#define MATMUL_MMA_STAGE_BYTES (MATMUL_MMA_MOST_BYTES(BLOCK_M) + MATMUL_MMA_MOST_BYTES(BLOCK_N))
// Behind the last step the sums lie there.
#define MATMUL_MMA_SUM_BYTES (BLOCK_M * BLOCK_N * 4u)
#define MATMUL_MMA_LOCAL_BYTES                                                              \
  (STAGES * MATMUL_MMA_STAGE_BYTES > MATMUL_MMA_SUM_BYTES ? STAGES * MATMUL_MMA_STAGE_BYTES \
                                                          : MATMUL_MMA_SUM_BYTES)

#define MATMUL_MMA_SIDE(x) ((x) >= 16u && (x) <= 256u && ((x) & ((x)-1u)) == 0u)
#define MATMUL_MMA_VALID                                                                           \
  (MATMUL_MMA_SIDE(BLOCK_M) && MATMUL_MMA_SIDE(BLOCK_N) && BLOCK_N >= 64u &&                       \
   MATMUL_MMA_SIDE(WARP_M) && MATMUL_MMA_SIDE(WARP_N) && WARP_M <= BLOCK_M && WARP_N <= BLOCK_N && \
   WARP_M * WARP_N <= 4096u && WG_X == 32u * MATMUL_MMA_WARPS && WG_X <= 512u && STAGES >= 2u &&   \
   STAGES <= 8u && BLOCK_M * MMA_ELEMENT_BYTES <= 16u * WG_X &&                                    \
   BLOCK_N * MMA_ELEMENT_BYTES <= 16u * WG_X)

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_MMA_GEOMETRY_H
