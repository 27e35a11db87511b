// SPDX-License-Identifier: Apache-2.0
// normal * weight + bias. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_WEIGH_H
#define TESSERA_OPERATIONS_NORMS_WEIGH_H

FUNCTION FLOAT4 norm_bias(NORM_PARAMETERS u32 column, u32 left) {
  return LOAD_BIAS(TO_INDEX(ARGS(bias_offset)) + column, left);
}

// What the chunk at `column` is multiplied by and what is added to it, as it is stored; nothing
// where the call has none, or floats beside 16-bit operands.
FUNCTION UINT4 norm_weight_chunk(NORM_PARAMETERS u32 column, u32 left) {
  if (NORM_HAS(NORM_WEIGHT) && !NORM_HAS(NORM_WIDE_WEIGHT))
    return LOAD_WEIGHT_CHUNK(TO_INDEX(ARGS(weight_offset)) + column, left);
  return MAKE_UINT4(0u, 0u, 0u, 0u);
}
FUNCTION UINT4 norm_bias_chunk(NORM_PARAMETERS u32 column, u32 left) {
  if (NORM_HAS(NORM_BIAS) && !NORM_HAS(NORM_WIDE_BIAS))
    return LOAD_BIAS_CHUNK(TO_INDEX(ARGS(bias_offset)) + column, left);
  return MAKE_UINT4(0u, 0u, 0u, 0u);
}

// Vector i of the chunk at `column`, of `left` elements, with these two.
FUNCTION FLOAT4 norm_weigh(NORM_PARAMETERS FLOAT4 normal, UINT4 weight, UINT4 bias, u32 i,
                           u32 column, u32 left) {
  FLOAT4 value = normal;
  if (NORM_HAS(NORM_WIDE_WEIGHT)) {
    value *= norm_weight(NORM_ARGUMENTS column + 4u * i, left - 4u * i);
  } else if (NORM_HAS(NORM_WEIGHT)) {
    value *= chunk_vector(weight, i);
  }
  if (NORM_HAS(NORM_WIDE_BIAS)) {
    value += norm_bias(NORM_ARGUMENTS column + 4u * i, left - 4u * i);
  } else if (NORM_HAS(NORM_BIAS)) {
    value += chunk_vector(bias, i);
  }
  return value;
}

// Four elements of what no item keeps.
FUNCTION FLOAT4 norm_value(NORM_PARAMETERS FLOAT4 normal, u32 column, u32 left) {
  FLOAT4 value = norm_weighted(NORM_ARGUMENTS normal, column, left);
  if (NORM_HAS(NORM_BIAS)) value += norm_bias(NORM_ARGUMENTS column, left);
  return value;
}

#endif  // TESSERA_OPERATIONS_NORMS_WEIGH_H
