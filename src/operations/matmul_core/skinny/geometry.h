// SPDX-License-Identifier: Apache-2.0
// What follows from the tunables of matmul/skinny: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_SKINNY_GEOMETRY_H
#define TESSERA_OPERATIONS_MATMUL_CORE_SKINNY_GEOMETRY_H

#define LANES_N (WG_X / LANES_K)
#define BLOCK_N (COLUMNS * LANES_N)
#define BLOCK_K (4 * SQUARES * LANES_K)  // terms of a round
// Vectors of sums of an item, and how many of them are added up over the lanes at once.
#define SKINNY_VECTORS (ROWS * COLUMNS / 4)
#define SKINNY_BATCH (SKINNY_VECTORS < 4 ? SKINNY_VECTORS : 4)
#define SKINNY_LOCAL_VECTORS (SKINNY_BATCH * WG_X)

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_SKINNY_GEOMETRY_H
