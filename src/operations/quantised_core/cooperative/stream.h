// SPDX-License-Identifier: Apache-2.0
// Geometry of quantised/cooperative/stream, from WG_X and the names of stream.def: read by C++ and
// GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_COOPERATIVE_STREAM_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_COOPERATIVE_STREAM_H

#define QUANT_STREAM_SUBGROUPS (WG_X / LANES)
#define QUANT_STREAM_BAND 8u     // blocks of columns of a work-group, at most
#define QUANT_STREAM_TERMS 256u  // of a turn of a sub-group: two blocks of 128
#define QUANT_STREAM_TURN (QUANT_STREAM_TERMS * QUANT_STREAM_SUBGROUPS)
// A lane has a chunk of 32 terms of a block, of columns LANES / 4 apart.
#define QUANT_STREAM_LANE_COLUMNS (4u * MATRIX_M / LANES)

// Local memory in units of 16 bytes: input, whose rows begin in different banks, and a matrix of
// each sub-group.
#define QUANT_STREAM_ROW (PART_TURNS * QUANT_STREAM_TURN / 8u + 1u)
#define QUANT_STREAM_INPUT (ROWS * QUANT_STREAM_ROW)
#define QUANT_STREAM_NUMBERS (QUANT_STREAM_SUBGROUPS * MATRIX_M * 2u)
// And in floats: sums of each sub-group, twice where there is room, scales of each sub-group, and
// sums that wait for the next part of the terms.
#define QUANT_STREAM_BUFFERS (ROWS == 1u ? 2u : 1u)
#define QUANT_STREAM_SUMS (QUANT_STREAM_SUBGROUPS * MATRIX_M * MATRIX_N)
#define QUANT_STREAM_SCALES (QUANT_STREAM_SUBGROUPS * 2u * MATRIX_M)
#define QUANT_STREAM_KEPT (QUANT_STREAM_BAND * MATRIX_M * ROWS)
#define QUANT_STREAM_LOCAL_BYTES                       \
  (16u * (QUANT_STREAM_INPUT + QUANT_STREAM_NUMBERS) + \
   4u * (QUANT_STREAM_BUFFERS * QUANT_STREAM_SUMS + QUANT_STREAM_SCALES + QUANT_STREAM_KEPT + 1u))

// What the kernel takes for granted.
#define QUANT_STREAM_VALID                                                                \
  (LANES >= 4u && WG_X % LANES == 0u && WG_X >= LANES && (4u * MATRIX_M) % LANES == 0u && \
   MATRIX_M * MATRIX_K >= 32u && (MATRIX_K == 8u || MATRIX_K == 16u) && AHEAD >= 1u &&    \
   AHEAD <= 4u)

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_COOPERATIVE_STREAM_H
