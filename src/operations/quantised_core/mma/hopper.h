// SPDX-License-Identifier: Apache-2.0
// What follows from the names of hopper.def: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_MMA_HOPPER_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_MMA_HOPPER_H

// A step is 128 bytes of a row of weights; scales are those of 128 terms or more.
#define QUANT_HOPPER_TERMS (FORMAT % 2 != 0 ? 256u : 128u)
#define QUANT_HOPPER_SPANS (QUANT_HOPPER_TERMS / 128u)
#define QUANT_HOPPER_COLUMNS (64u * WARPGROUPS_N)  // of output, of a work-group
#define QUANT_HOPPER_LINES (QUANT_HOPPER_COLUMNS * WARPGROUPS_K)
#define QUANT_HOPPER_SHARE_BYTES (2u * QUANT_HOPPER_TERMS * ROWS)  // input of a share of the terms
// Of a stage; input that stays in X_BYTES is in none.
#define QUANT_HOPPER_INPUT_BYTES (X_BYTES != 0 ? 0u : QUANT_HOPPER_SHARE_BYTES * WARPGROUPS_K)
#define QUANT_HOPPER_WEIGHT_BYTES (128u * QUANT_HOPPER_LINES)
#define QUANT_HOPPER_SCALE_BYTES (4u * QUANT_HOPPER_SPANS * QUANT_HOPPER_LINES)
#define QUANT_HOPPER_STAGE_BYTES                          \
  (QUANT_HOPPER_INPUT_BYTES + QUANT_HOPPER_WEIGHT_BYTES + \
   (ZEROS != 0 ? 2u : 1u) * QUANT_HOPPER_SCALE_BYTES)
#define QUANT_HOPPER_BARRIERS_START \
  (STAGES * QUANT_HOPPER_STAGE_BYTES + (X_BYTES != 0 ? X_BYTES + 128u : 0u))
// Behind the last step the sums lie in the stages, row by row of output, in different banks.
#define QUANT_HOPPER_SUM_PITCH (QUANT_HOPPER_COLUMNS + 4u)
#define QUANT_HOPPER_SUM_BYTES (4u * WARPGROUPS_K * ROWS * QUANT_HOPPER_SUM_PITCH)
#define QUANT_HOPPER_LOCAL_BYTES (QUANT_HOPPER_BARRIERS_START + 16u * STAGES)
// In scratch, in words: the maps, input in order, which groups have left their sums, and these
// sums.
#define QUANT_HOPPER_INPUT_START 64u
#define QUANT_HOPPER_DONE_START(m, k) (QUANT_HOPPER_INPUT_START + (m) * (((k) + 31u) / 32u * 16u))
#define QUANT_HOPPER_SUMS_START(m, k) (QUANT_HOPPER_DONE_START(m, k) + (SHARES + 31u) / 32u * 32u)
#define QUANT_HOPPER_VALID                                                                \
  (STAGES >= 2u && STAGES <= 8u && WARPGROUPS_N >= 1u && WARPGROUPS_K >= 1u &&            \
   WARPGROUPS_N * WARPGROUPS_K == 4u && WG_X == 640u && (X_BYTES != 0u) == (ROWS < 8u) && \
   QUANT_HOPPER_SUM_BYTES <= QUANT_HOPPER_BARRIERS_START)

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_MMA_HOPPER_H
