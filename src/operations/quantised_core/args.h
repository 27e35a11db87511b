// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of products with quantised weights: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISED_CORE_ARGS_H
#define TESSERA_OPERATIONS_QUANTISED_CORE_ARGS_H
#include "abi/shared.h"

// Values of the constant FORMAT, or of `format`: how 32 weights of a row lie, which is what an item
// takes at a time.
#define QUANT_BYTES 0    // a byte each
#define QUANT_NIBBLES 1  // two to a byte, the even one in the low half
#define QUANT_Q8_0 2     // a half as scale, then a byte each
#define QUANT_Q4_0 3     // a half as scale, then 16 bytes: the first 16 weights in the low halves
#define QUANT_CHUNK 32

// Bits of `features`.
#define QUANT_SIGNED 1u        // codes and zeros are in two's complement
#define QUANT_ZEROS 2u         // a zero point for each scale
#define QUANT_ALIGNED 4u       // chunks begin at multiples of 16 bytes
#define QUANT_INPUT_SCALE 16u  // a scale for each row of input
#define QUANT_VECTORS 8u       // vectors of four elements of input begin at multiples of four

TESSERA_ABI_BEGIN

struct QuantArgs {
  u32 m;
  u32 n;
  u32 k;
  u32 features;  // QUANT_…
  u32 group;     // chunks that share a scale
  u32 input_offset;
  u32 input_row;
  u32 input_scale_offset;
  u32 input_scale_row;
  u32 weight_offset;  // in bytes
  u32 weight_row;
  u32 scale_offset;
  u32 scale_row;
  u32 scale_type;  // DTYPE_…
  u32 zero_offset;
  u32 zero_row;
  u32 output_offset;
  u32 output_row;
  u32 output_type;
  u32 format;  // QUANT_BYTES ..., where no constant says it
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_QUANTISED_CORE_ARGS_H
