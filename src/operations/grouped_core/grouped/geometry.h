// SPDX-License-Identifier: Apache-2.0
// What follows from the tunables of matmul/grouped/product: read by C++, OpenCL C and GLSL. As that
// of matmul_core/tile.
#ifndef TESSERA_OPERATIONS_GROUPED_CORE_GROUPED_GEOMETRY_H
#define TESSERA_OPERATIONS_GROUPED_CORE_GROUPED_GEOMETRY_H

#define LANES_N (WG_X / LANES_M)
#define BLOCK_M (ROWS * LANES_M)
#define BLOCK_N (COLUMNS * LANES_N)
#define TILE_PARTS (BLOCK_K / 4)
#define TILE_STRIDE (TILE_PARTS | 1)
#define TILE_VECTORS ((BLOCK_M + BLOCK_N) * TILE_STRIDE)
#define TILE_A_SQUARES (BLOCK_M / 4 * TILE_PARTS)
#define TILE_B_SQUARES (BLOCK_N / 4 * TILE_PARTS)
#define TILE_FETCHES ((TILE_A_SQUARES + TILE_B_SQUARES + WG_X - 1) / WG_X)

#endif  // TESSERA_OPERATIONS_GROUPED_CORE_GROUPED_GEOMETRY_H
