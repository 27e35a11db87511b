// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of quantise and dequantise: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISE_ARGS_H
#define TESSERA_OPERATIONS_QUANTISE_ARGS_H
#include "abi/storage.h"

// Bits of `features`.
#define CODES_ALIGNED 1u     // eights of codes and of floats begin at words and vectors
#define CODES_ZEROS 2u       // a zero point for each scale
#define CODES_DYNAMIC 4u     // scales are what floats are multiplied by
#define CODES_HALF_BYTES 8u  // of GGUF's blocks: those of q4_0
#define CODES_FLAT 16u       // blocks are parts of one row

TESSERA_ABI_BEGIN

// Element (batch, row, column): offset + batch `batch` + row `row` + column.
struct CodesMatrix {
  u32 offset;
  u32 batch;
  u32 row;
};

struct CodesArgs {
  u32 blocks;  // of floats that share a scale: batches x talls x groups
  u32 talls;   // blocks along the rows of a batch
  u32 groups;  // blocks along a row
  u32 rows;    // of a batch
  u32 columns;
  u32 group_rows;  // rows of a block
  u32 group;       // columns of a block
  u32 features;    // CODES_…
  u32 type;        // of codes: DTYPE_…
  u32 floats_type;
  f32 largest;  // code
  STRUCT(CodesMatrix) floats;
  STRUCT(CodesMatrix) codes;
  STRUCT(CodesMatrix) scale;
  STRUCT(CodesMatrix) zero;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_QUANTISE_ARGS_H
