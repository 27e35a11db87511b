// SPDX-License-Identifier: Apache-2.0
// The body of state_space/conv/vectors.cl and vectors.comp. Text for OpenCL C and GLSL.

#include "operations/causal_conv1d/begin.h"

#define CONV_TAKE_VECTOR(to, at, back)                                                       \
  {                                                                                          \
    to = nowhere;                                                                            \
    if ((at)-begin >= (back)) {                                                              \
      to = LOAD_INPUT_VECTOR(CONV_ROW(source, (at) - (back)));                               \
    } else if (CONV_HAS(CONV_INITIAL)) {                                                     \
      to = LOAD_INITIAL_VECTOR(CONV_STATE(initial_state, WIDTH - 1u + (at)-begin - (back))); \
    }                                                                                        \
  }
// One token, whose input is `words`; `past` are those before it.
#define CONV_STEP(words, token)                                                              \
  {                                                                                          \
    FLOAT4 sum[2];                                                                           \
    UNROLL for (u32 f = 0u; f < CONV_FOURS; ++f) {                                           \
      const FLOAT4 now = WIDEN_VECTOR(words, f, ROWS_TYPE);                                  \
      sum[f] = bias[f];                                                                      \
      UNROLL for (u32 j = 0u; j + 1u < WIDTH; ++j) sum[f] +=                                 \
          weight[2u * j + f] * past[2u * j + f];                                             \
      sum[f] += weight[2u * WIDTH - 2u + f] * now;                                           \
      UNROLL for (u32 j = 0u; j + 2u < WIDTH; ++j) past[2u * j + f] = past[2u * j + 2u + f]; \
      past[2u * WIDTH - 4u + f] = now;                                                       \
      if (silu) sum[f] = SPACE_SILU4(sum[f]);                                                \
    }                                                                                        \
    STORE_OUTPUT_VECTOR(NARROW_VECTOR(sum[0], sum[1], ROWS_TYPE), to + (token)*to_token);    \
  }

const UINT4 nowhere = MAKE_UINT4(0u, 0u, 0u, 0u);
if (present && is_state) {
  UNROLL for (u32 r = 0u; r + 1u < WIDTH; ++r) {
    UINT4 words;
    CONV_TAKE_VECTOR(words, end, WIDTH - 1u - r)
    STORE_FINAL_VECTOR(words, CONV_STATE(final_state, r));
  }
} else if (present) {
  FLOAT4 weight[2u * WIDTH], past[2u * WIDTH], bias[2];
  UNROLL for (u32 f = 0u; f < CONV_FOURS; ++f) {
    const u32 c = channel + 4u * f;
    bias[f] = zero;
    if (CONV_HAS(CONV_BIAS)) bias[f] = LOAD_BIAS(ARGS(bias_offset) + c * ARGS(bias_stride), 4u);
    if (WIDTH == 4u && CONV_HAS(CONV_TAPS_OF_CHANNEL)) {
      const u32 at = ARGS(weight_offset) + 4u * c;
      const FLOAT4 x = LOAD_TAPS(at), y = LOAD_TAPS(at + 4u), z = LOAD_TAPS(at + 8u),
                   w = LOAD_TAPS(at + 12u);
      weight[f] = MAKE_FLOAT4(x.x, y.x, z.x, w.x);
      weight[2u + f] = MAKE_FLOAT4(x.y, y.y, z.y, w.y);
      weight[4u % (2u * WIDTH) + f] = MAKE_FLOAT4(x.z, y.z, z.z, w.z);
      weight[6u % (2u * WIDTH) + f] = MAKE_FLOAT4(x.w, y.w, z.w, w.w);
    } else {
      UNROLL for (u32 j = 0u; j < WIDTH; ++j) weight[2u * j + f] =
          LOAD_WEIGHT(ARGS(weight_offset) + c * ARGS(weight_row) + j * ARGS(weight_column), 4u);
    }
  }

  // Arguments are read before anything is stored, behind which they would be read again.
  const bool silu = CONV_HAS(CONV_SILU);
  const u32 from = CONV_ROW(source, 0u), from_token = ARGS(source.token);
  const u32 to = CONV_ROW(result, 0u), to_token = ARGS(result.token);
  const u32 first = unit % ARGS(chunks) * ARGS(chunk), last = min(first + ARGS(chunk), tokens);
  u32 token = first;
  while (token < last) {
    if (CONV_HAS(CONV_PACKED)) SPACE_FIND(token)
    const u32 stop = min(last, end);
    if (held) {
      UNROLL for (u32 j = 0u; j + 1u < WIDTH; ++j) {
        UINT4 words;
        CONV_TAKE_VECTOR(words, token, WIDTH - 1u - j)
        UNROLL for (u32 f = 0u; f < CONV_FOURS; ++f) past[2u * j + f] =
            WIDEN_VECTOR(words, f, ROWS_TYPE);
      }
      for (; token + AHEAD <= stop; token += AHEAD) {
        UINT4 asked[AHEAD];
        UNROLL for (u32 i = 0u; i < AHEAD; ++i) asked[i] =
            LOAD_INPUT_VECTOR(from + (token + i) * from_token);
        UNROLL for (u32 i = 0u; i < AHEAD; ++i) CONV_STEP(asked[i], token + i)
      }
      for (; token < stop; ++token) {
        const UINT4 words = LOAD_INPUT_VECTOR(from + token * from_token);
        CONV_STEP(words, token)
      }
      // Where states are no units of their own, what holds the last token has the last inputs.
      if (CONV_HAS(CONV_FINAL) && ARGS(states) == 0u && stop == end) {
        UNROLL for (u32 j = 0u; j + 1u < WIDTH; ++j) {
          STORE_FINAL_VECTOR(NARROW_VECTOR(past[2u * j], past[2u * j + 1u], ROWS_TYPE),
                             CONV_STATE(final_state, j));
        }
      }
    } else {
      for (; token < stop; ++token) STORE_OUTPUT_VECTOR(nowhere, to + token * to_token);
    }
  }
}
