// SPDX-License-Identifier: Apache-2.0
// The end of a forward row. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H
#define TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H

FUNCTION FLOAT4 norm_bias(NORM_PARAMETERS u32 column, u32 left) {
  return LOAD_BIAS(TO_INDEX(ARGS(bias_offset)) + column, left);
}

// normal * weight + bias, of the chunk at `column`.
FUNCTION void norm_store_chunk(NORM_PARAMETERS FLOAT4 first, FLOAT4 second, u32 column, INDEX y,
                               u32 left) {
  FLOAT4 value[2];
  value[0] = first;
  value[1] = second;
  if (NORM_HAS(NORM_WIDE_WEIGHT)) {
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) value[i] *=
        norm_weight(NORM_ARGUMENTS column + 4u * i, left - 4u * i);
  } else if (NORM_HAS(NORM_WEIGHT)) {
    const UINT4 weight = LOAD_WEIGHT_CHUNK(TO_INDEX(ARGS(weight_offset)) + column, left);
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) value[i] *= chunk_vector(weight, i);
  }
  if (NORM_HAS(NORM_WIDE_BIAS)) {
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) value[i] +=
        norm_bias(NORM_ARGUMENTS column + 4u * i, left - 4u * i);
  } else if (NORM_HAS(NORM_BIAS)) {
    const UINT4 bias = LOAD_BIAS_CHUNK(TO_INDEX(ARGS(bias_offset)) + column, left);
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) value[i] += chunk_vector(bias, i);
  }
  STORE_Y_CHUNK(value[0], value[1], y + column, left);
}

FUNCTION void norm_store(NORM_PARAMETERS FLOAT4 normal, u32 column, INDEX y, u32 left) {
  FLOAT4 value = norm_weighted(NORM_ARGUMENTS normal, column, left);
  if (NORM_HAS(NORM_BIAS)) value += norm_bias(NORM_ARGUMENTS column, left);
  STORE_Y(value, y + column, left);
}

#endif  // TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H
