// SPDX-License-Identifier: Apache-2.0
// What a work-group of cells/mma holds in local memory, from the names of mma.def: read by C++ and
// OpenCL C. Of 16-bit elements.
#ifndef TESSERA_OPERATIONS_CELLS_CORE_MMA_GEOMETRY_H
#define TESSERA_OPERATIONS_CELLS_CORE_MMA_GEOMETRY_H

#define CELL_MMA_WARPS (WG_X / 32u)
// Terms by 16; each warp takes K_STEPS of them, one behind the other.
#define CELL_MMA_STEPS (CELL_MMA_WARPS * K_STEPS)
#define CELL_MMA_TERMS (16u * CELL_MMA_STEPS)
// Columns by 8: units of a gate, then of the next.
#define CELL_MMA_COLUMNS (CELL_GATES * UNITS / 8u)
#define CELL_MMA_WEIGHT_BYTES (CELL_MMA_COLUMNS * CELL_MMA_TERMS * 16u)
// Sums of each warp.
#define CELL_MMA_SUM_BYTES (CELL_MMA_WARPS * BLOCK_ROWS * CELL_GATES * UNITS * 4u)
#define CELL_MMA_LOCAL_BYTES (CELL_MMA_WEIGHT_BYTES + CELL_MMA_SUM_BYTES + 16u)
// Factors of a block of rows, by 4 bytes.
#define CELL_MMA_BLOCK_WORDS (BLOCK_ROWS / 16u * CELL_MMA_STEPS * 128u)

#define CELL_MMA_VALID                                                                         \
  ((UNITS == 8u || UNITS == 16u) && (BLOCK_ROWS == 16u || BLOCK_ROWS == 32u) && WG_X >= 64u && \
   WG_X <= 512u && WG_X % 32u == 0u && K_STEPS >= 1u && K_STEPS * 16u / UNITS <= 32u)

// The way back: terms are gates of units by 16, of which each warp takes SIXTEENS; weights of HELD
// of them are in registers. Factors are followed by a scale of each row and sixteen.
#define CELL_BACK_SIXTEENS (CELL_MMA_WARPS * SIXTEENS)
#define CELL_BACK_WEIGHT_BYTES (CELL_MMA_WARPS * (SIXTEENS - HELD) * CELL_GATES * BACK_UNITS * 32u)
#define CELL_BACK_SUM_BYTES (CELL_MMA_WARPS * BACK_ROWS * BACK_UNITS * 4u)
#define CELL_BACK_LOCAL_BYTES (CELL_BACK_WEIGHT_BYTES + CELL_BACK_SUM_BYTES + 16u)
#define CELL_BACK_FACTOR_WORDS (BACK_ROWS / 16u * CELL_BACK_SIXTEENS * CELL_GATES * 128u)
#define CELL_BACK_BLOCK_WORDS (CELL_BACK_FACTOR_WORDS + CELL_BACK_SIXTEENS * BACK_ROWS)
#define CELL_BACK_HELD_WORDS (HELD * CELL_GATES * BACK_UNITS / 4u)  // of an item

#define CELL_BACK_VALID                                                                  \
  ((BACK_UNITS == 16u || BACK_UNITS == 32u) && (BACK_ROWS == 16u || BACK_ROWS == 32u) && \
   BACK_UNITS + BACK_ROWS <= 48u && WG_X >= 64u && WG_X <= 512u && WG_X % 32u == 0u &&   \
   SIXTEENS >= 1u && HELD <= SIXTEENS && AHEAD >= 1u && AHEAD <= 16u &&                  \
   CELL_BACK_HELD_WORDS <= 64u && SIXTEENS * 16u / BACK_UNITS + 1u <= 32u)

#endif  // TESSERA_OPERATIONS_CELLS_CORE_MMA_GEOMETRY_H
