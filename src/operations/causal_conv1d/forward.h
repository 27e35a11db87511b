// SPDX-License-Identifier: Apache-2.0
// The body of state_space/conv/forward.cl and forward.comp. Text for OpenCL C and GLSL.

#include "operations/causal_conv1d/begin.h"
const u32 left = present ? min(CONV_CHANNELS, ARGS(dim) - channel) : 0u;

if (present && is_state) {
  for (u32 r = 0u; r + 1u < WIDTH; ++r) {
    FLOAT4 x;
    CONV_TAKE(x, end, WIDTH - 1u - r)
    STORE_FINAL(x, CONV_STATE(final_state, r), left);
  }
} else if (present) {
  FLOAT4 weight[WIDTH], past[WIDTH];
  UNROLL for (u32 j = 0u; j < WIDTH; ++j) {
    weight[j] = LOAD_WEIGHT(
        ARGS(weight_offset) + channel * ARGS(weight_row) + j * ARGS(weight_column), left);
    past[j] = zero;
  }
  FLOAT4 bias = zero;
  if (CONV_HAS(CONV_BIAS)) bias = LOAD_BIAS(ARGS(bias_offset) + channel * ARGS(bias_stride), left);

  const u32 first = unit % ARGS(chunks) * ARGS(chunk), last = min(first + ARGS(chunk), tokens);
  bool anew = true;
  for (u32 token = first; token < last; ++token) {
    if (CONV_HAS(CONV_PACKED) && (anew || token >= end)) {
      SPACE_FIND(token)
      anew = true;
    }
    if (held) {
      if (anew) {
        UNROLL for (u32 j = 1u; j < WIDTH; ++j) CONV_TAKE(past[j], token, WIDTH - j) anew = false;
      }
      UNROLL for (u32 j = 1u; j < WIDTH; ++j) past[j - 1u] = past[j];
      past[WIDTH - 1u] = LOAD_INPUT(CONV_ROW(source, token), left);
      FLOAT4 sum = bias;
      UNROLL for (u32 j = 0u; j < WIDTH; ++j) sum += weight[j] * past[j];
      if (CONV_HAS(CONV_SILU)) sum = SPACE_SILU4(sum);
      STORE_OUTPUT(sum, CONV_ROW(result, token), left);
    } else {
      STORE_OUTPUT(zero, CONV_ROW(result, token), left);
    }
  }
}
