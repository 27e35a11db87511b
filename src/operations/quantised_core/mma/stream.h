// SPDX-License-Identifier: Apache-2.0
// What follows from the names of stream.def: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_MMA_STREAM_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_MMA_STREAM_H

// A step is 128 bytes of a row of weights.
#define QUANT_STREAM_TERMS (FORMAT % 2 != 0 ? 256u : 128u)
// Steps of each warp whose input is in local memory at once.
#define QUANT_STREAM_PART_TURNS (X_BYTES / (2u * ROWS * QUANT_STREAM_TERMS * WARPS))
// Blocks of 16 columns that a work-group takes before it turns to others.
#define QUANT_STREAM_BAND 16u
#define QUANT_STREAM_SUM_BYTES (4u * 16u * ROWS * WARPS)
#define QUANT_STREAM_KEPT_BYTES (4u * 16u * ROWS * QUANT_STREAM_BAND)
// Rows of a turn of all warps, each in other banks than the one before; with two barriers.
#define QUANT_STREAM_LINE (128u * WARPS + 64u)
#define QUANT_STREAM_STAGE_BYTES (16u * QUANT_STREAM_LINE)
#define QUANT_STREAM_LOCAL_BYTES                                     \
  (X_BYTES + 2u * QUANT_STREAM_SUM_BYTES + QUANT_STREAM_KEPT_BYTES + \
   STAGES * (QUANT_STREAM_STAGE_BYTES + 16u))
#define QUANT_STREAM_VALID                                                                      \
  (WARPS >= 1u && WARPS <= 16u && AHEAD >= 1u && AHEAD <= 4u && STAGES <= 8u && STAGES != 1u && \
   WG_X == 32u * WARPS && 16u * ROWS <= WG_X && QUANT_STREAM_PART_TURNS >= 1u)

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_MMA_STREAM_H
