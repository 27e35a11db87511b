// SPDX-License-Identifier: Apache-2.0
// The end of a forward row. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H
#define TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H

FUNCTION void norm_store(NORM_PARAMETERS FLOAT4 value, u32 column, INDEX y, u32 left) {
  if ((ARGS(features) & NORM_BIAS) != 0u)
    value += LOAD_BIAS(TO_INDEX(ARGS(bias_offset)) + column, left);
  STORE_Y(value, y, left);
}

#endif  // TESSERA_OPERATIONS_NORMS_FORWARD_STORE_H
