// SPDX-License-Identifier: Apache-2.0
// What follows from the names of hopper.def: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_HOPPER_GEOMETRY_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_HOPPER_GEOMETRY_H

// A step is 128 bytes of a row of weights.
#define QUANT_HOPPER_TERMS 256u
#define QUANT_HOPPER_COLUMNS (WG_X / 2u)  // of output, of a work-group: 64 of a warpgroup
#define QUANT_HOPPER_INPUT_BYTES (2u * QUANT_HOPPER_TERMS * ROWS)
#define QUANT_HOPPER_STAGE_BYTES (128u * QUANT_HOPPER_COLUMNS + QUANT_HOPPER_INPUT_BYTES)
#define QUANT_HOPPER_LOCAL_BYTES (STAGES * QUANT_HOPPER_STAGE_BYTES)
#define QUANT_HOPPER_VALID \
  (STAGES >= 2u && STAGES <= 6u && WG_X % 128u == 0u && WG_X >= 128u && WG_X <= 512u)

#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_HOPPER_GEOMETRY_H
