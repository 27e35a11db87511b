// SPDX-License-Identifier: Apache-2.0
// Local memory of matmul/hopper/product, and what is in scratch: read by C++ and OpenCL C. Where
// FLOATS is 1 columns of b come from scratch, as floats: PARTS is 2 where those are high and low
// parts, and NARROW_A 1 where rows of a have 16 bits. Else they are 0, 1 and 0.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_HOPPER_GEOMETRY_H
#define TESSERA_OPERATIONS_MATMUL_CORE_HOPPER_GEOMETRY_H
#include "operations/matmul_core/core/hopper_results.h"

// A tile has 64 rows of each of WARPGROUPS warpgroups, by BLOCK_N columns.
#define HOPPER_ROWS (64 * WARPGROUPS)
#define HOPPER_BLOCK_BYTES 8192                                      // 64 rows of 128 bytes
#define HOPPER_ROWS_BYTES (HOPPER_BLOCK_BYTES / (NARROW_A ? 2 : 1))  // a warpgroup's
#define HOPPER_A_BYTES (WARPGROUPS * HOPPER_ROWS_BYTES)
#define HOPPER_B_BYTES (BLOCK_N / 64 * HOPPER_BLOCK_BYTES)  // of a part
#define HOPPER_STAGE_BYTES (HOPPER_A_BYTES + PARTS * HOPPER_B_BYTES)
// Where a warpgroup's results wait: two buffers of 64 rows by 128 or 256 bytes.
#define HOPPER_RESULT_BLOCKS (BLOCK_N == 64 || WARPGROUPS == 3 || FLOATS ? 1 : 2)
#define HOPPER_BUFFER_BYTES (HOPPER_RESULT_BLOCKS * HOPPER_BLOCK_BYTES)
#define HOPPER_RESULTS_START (STAGES * HOPPER_STAGE_BYTES)
#define HOPPER_BARRIERS_START (HOPPER_RESULTS_START + 2 * WARPGROUPS * HOPPER_BUFFER_BYTES)
#define HOPPER_LOCAL_BYTES (HOPPER_BARRIERS_START + 16 * STAGES + 8 * WARPGROUPS)

// Tensor maps in scratch, of each work-group: of a, b, the result and the matrix that joins it.
#define HOPPER_MAP_FLOATS 32
#define HOPPER_MAPS_FLOATS (4 * HOPPER_MAP_FLOATS)
#define HOPPER_MOST_GROUPS 256

// Floats of a column of b in parts: of each 32 terms the high ones, then the low ones, if any.
#define HOPPER_PART_TERMS 32u
#define HOPPER_PARTS_PITCH(k) \
  (((k) + HOPPER_PART_TERMS - 1u) / HOPPER_PART_TERMS * (PARTS * HOPPER_PART_TERMS))
#define HOPPER_SPLIT_COLUMNS 64u  // of a tile of matmul/hopper/split

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_HOPPER_GEOMETRY_H
