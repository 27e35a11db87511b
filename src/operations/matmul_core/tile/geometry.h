// SPDX-License-Identifier: Apache-2.0
// What follows from the tunables of matmul/tile: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_TILE_GEOMETRY_H
#define TESSERA_OPERATIONS_MATMUL_CORE_TILE_GEOMETRY_H

#define LANES_N (WG_X / LANES_M)
// Blocks of 4 x 8 items are neighbours: of two that differ in the lowest bit both read the same
// columns, of two that differ in another both mostly read the same rows. NVIDIA's GPUs then read 16
// bytes of 32 items in half the time.
#define TILE_BLOCKED (LANES_M % 4 == 0 && LANES_N % 8 == 0)
#define TILE_LANE_M(lane)                                                            \
  (TILE_BLOCKED ? (lane) / 32 / (LANES_N / 8) * 4 + (lane) % 2 + (lane) / 16 % 2 * 2 \
                : (lane) / LANES_N)
#define TILE_LANE_N(lane) \
  (TILE_BLOCKED ? (lane) / 32 % (LANES_N / 8) * 8 + (lane) / 2 % 8 : (lane) % LANES_N)
#define BLOCK_M (ROWS * LANES_M)
#define BLOCK_N (COLUMNS * LANES_N)
// Local memory holds rows of a and columns of b as vectors of four terms; an odd stride puts
// neighbours in different banks.
#define TILE_PARTS (BLOCK_K / 4)
#define TILE_STRIDE (TILE_PARTS | 1)
#define TILE_VECTORS ((BLOCK_M + BLOCK_N) * TILE_STRIDE)
// They are fetched in squares of 4 x 4.
#define TILE_A_SQUARES (BLOCK_M / 4 * TILE_PARTS)
#define TILE_B_SQUARES (BLOCK_N / 4 * TILE_PARTS)
#define TILE_FETCHES ((TILE_A_SQUARES + TILE_B_SQUARES + WG_X - 1) / WG_X)

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_TILE_GEOMETRY_H
