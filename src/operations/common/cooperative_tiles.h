// SPDX-License-Identifier: Apache-2.0
// Tiles of cooperative matrices in local memory, from WG_X and the names of cooperative_tiles.def:
// read by C++ and GLSL. A vector is 16 bytes: eight elements or four sums. A line is what is
// contiguous in memory, an odd number of vectors long, so that neighbours lie in different banks.
#ifndef TESSERA_OPERATIONS_COMMON_COOPERATIVE_TILES_H
#define TESSERA_OPERATIONS_COMMON_COOPERATIVE_TILES_H

#define COOPERATIVE_A_VECTORS ((A_BY_TERMS != 0u ? BLOCK_K : BLOCK_M) / 8u)
#define COOPERATIVE_B_VECTORS ((B_BY_TERMS != 0u ? BLOCK_K : BLOCK_N) / 8u)
#define COOPERATIVE_A_LINES (A_BY_TERMS != 0u ? BLOCK_M : BLOCK_K)
#define COOPERATIVE_B_LINES (B_BY_TERMS != 0u ? BLOCK_N : BLOCK_K)
#define COOPERATIVE_A_STRIDE (COOPERATIVE_A_VECTORS | 1u)
#define COOPERATIVE_B_STRIDE (COOPERATIVE_B_VECTORS | 1u)
#define COOPERATIVE_A_AREA (COOPERATIVE_A_LINES * COOPERATIVE_A_STRIDE)
#define COOPERATIVE_B_AREA (COOPERATIVE_B_LINES * COOPERATIVE_B_STRIDE)
// Vectors that an item copies in a step.
#define COOPERATIVE_COPIES(lines, vectors) (((lines) * (vectors) + WG_X - 1u) / WG_X)
#define COOPERATIVE_A_COPIES COOPERATIVE_COPIES(COOPERATIVE_A_LINES, COOPERATIVE_A_VECTORS)
#define COOPERATIVE_B_COPIES COOPERATIVE_COPIES(COOPERATIVE_B_LINES, COOPERATIVE_B_VECTORS)
// Behind the last step each sub-group has a place for sums of MATRIX_M rows.
#define COOPERATIVE_SUBGROUPS (WG_X / LANES)
#define COOPERATIVE_OWN_STRIDE (GROUP_N / 4u | 1u)
#define COOPERATIVE_OWN_AREA (MATRIX_M * COOPERATIVE_OWN_STRIDE)
#define COOPERATIVE_TILE_AREA (COOPERATIVE_A_AREA + COOPERATIVE_B_AREA)
#define COOPERATIVE_SUM_AREA (COOPERATIVE_SUBGROUPS * COOPERATIVE_OWN_AREA)
#define COOPERATIVE_AREA \
  (COOPERATIVE_TILE_AREA > COOPERATIVE_SUM_AREA ? COOPERATIVE_TILE_AREA : COOPERATIVE_SUM_AREA)

#define COOPERATIVE_ROW_TILES (GROUP_M / MATRIX_M)
#define COOPERATIVE_COLUMN_TILES (GROUP_N / MATRIX_N)

// What the kernel takes for granted. Evaluate the divisors first: the rest divides by them.
#define COOPERATIVE_DIVISORS \
  (LANES > 0u && MATRIX_M > 0u && MATRIX_N > 0u && MATRIX_K > 0u && GROUP_M > 0u && GROUP_N > 0u)
#define COOPERATIVE_VALID                                                                       \
  (BLOCK_M % GROUP_M == 0u && BLOCK_N % GROUP_N == 0u && GROUP_M % MATRIX_M == 0u &&            \
   GROUP_N % MATRIX_N == 0u && BLOCK_K % MATRIX_K == 0u && BLOCK_M % 8u == 0u &&                \
   BLOCK_N % 8u == 0u && MATRIX_M % 8u == 0u && MATRIX_N % 8u == 0u && MATRIX_K % 8u == 0u &&   \
   WG_X == LANES * (BLOCK_M / GROUP_M) * (BLOCK_N / GROUP_N) && BLOCK_M > 0u && BLOCK_N > 0u && \
   BLOCK_K > 0u)

#endif  // TESSERA_OPERATIONS_COMMON_COOPERATIVE_TILES_H
