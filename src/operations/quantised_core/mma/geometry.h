// SPDX-License-Identifier: Apache-2.0
// What follows from the names of mma.def: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_MMA_GEOMETRY_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_MMA_GEOMETRY_H

// A step is 128 bytes of a row of weights.
#define QUANT_MMA_TERMS (FORMAT % 2 != 0 ? 256u : 128u)
#define QUANT_MMA_COLUMNS (16u * TILES * WARPS_N)  // of output, of a work-group
#define QUANT_MMA_WEIGHT_BYTES (128u * QUANT_MMA_COLUMNS * WARPS_K)
#define QUANT_MMA_INPUT_BYTES (INPUT_LOCAL != 0 ? 2u * QUANT_MMA_TERMS * ROWS * WARPS_K : 0u)
#define QUANT_MMA_STAGE_BYTES (QUANT_MMA_WEIGHT_BYTES + QUANT_MMA_INPUT_BYTES)
// Behind the last step the sums lie there, row by row of output, in different banks.
#define QUANT_MMA_SUM_PITCH (QUANT_MMA_COLUMNS + 4u)
#define QUANT_MMA_SUM_BYTES (4u * WARPS_K * ROWS * QUANT_MMA_SUM_PITCH)
#define QUANT_MMA_LOCAL_BYTES                                                            \
  (STAGES * QUANT_MMA_STAGE_BYTES > QUANT_MMA_SUM_BYTES ? STAGES * QUANT_MMA_STAGE_BYTES \
                                                        : QUANT_MMA_SUM_BYTES)
#define QUANT_MMA_VALID                                                                            \
  (TILES >= 1u && TILES <= 2u && WARPS_N >= 1u && WARPS_K >= 1u && STAGES >= 2u && STAGES <= 8u && \
   INPUT_LOCAL <= 1u && WG_X == 32u * WARPS_N * WARPS_K && WG_X <= 512u && TILES * ROWS <= 128u)

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_MMA_GEOMETRY_H
