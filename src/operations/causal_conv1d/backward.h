// SPDX-License-Identifier: Apache-2.0
// The body of state_space/conv/backward.cl and backward.comp: from the last token that the chunk's
// inputs reach to its first. Behind a sequence's first token come the inputs of its state, which
// are units of their own. Text for OpenCL C and GLSL.

#include "operations/causal_conv1d/begin.h"
const u32 left = present ? min(CONV_CHANNELS, ARGS(dim) - channel) : 0u;

if (present) {
  // slope[d]: the gradient of what stands before the activation d tokens later.
  FLOAT4 weight[WIDTH], past[WIDTH], slope[WIDTH], dweight[WIDTH];
  UNROLL for (u32 j = 0u; j < WIDTH; ++j) {
    weight[j] = LOAD_WEIGHT(
        ARGS(weight_offset) + channel * ARGS(weight_row) + j * ARGS(weight_column), left);
    past[j] = slope[j] = dweight[j] = zero;
  }
  FLOAT4 bias = zero, dbias = zero;
  if (CONV_HAS(CONV_BIAS)) bias = LOAD_BIAS(ARGS(bias_offset) + channel * ARGS(bias_stride), left);

  // Positions count from WIDTH - 1 before the tokens, which keeps those of states above 0.
  const u32 behind = WIDTH - 1u;
  u32 first = begin, last = begin;  // of a state
  if (!is_state) {
    first = unit % ARGS(chunks) * ARGS(chunk);
    last = min(first + ARGS(chunk), tokens);
  }
  const u32 lowest = is_state ? begin : first + behind;
  const u32 highest = min(last + behind, is_state ? end : tokens) + behind;
  bool anew = true;
  for (u32 position = highest; position > lowest; --position) {
    // The token, unless it lies before the sequence of a state.
    const u32 token = position - 1u - behind;
    // Where registers have room, AHEAD tokens of a sequence's inside, whose taps and outputs all
    // are within it.
    if (WIDTH <= 4u && CONV_HAS(CONV_ALIGNED) && !is_state && held && !anew && token < last &&
        position >= lowest + AHEAD && position <= end && token >= begin + behind + AHEAD - 1u) {
      const bool silu = CONV_HAS(CONV_SILU), makes_input = CONV_HAS(CONV_GRAD_INPUT);
      const u32 source = CONV_ROW(source, 0u), source_token = ARGS(source.token);
      const u32 given = CONV_ROW(result, 0u), given_token = ARGS(result.token);
      const u32 made = CONV_ROW(dinput, 0u), made_token = ARGS(dinput.token);
      FLOAT4 asked[AHEAD], gradient[AHEAD];
      UNROLL for (u32 i = 0u; i < AHEAD; ++i) {
        asked[i] = LOAD_INPUT_FOUR(source + (token - i - behind) * source_token);
        gradient[i] = LOAD_GRADIENT_FOUR(given + (token - i) * given_token);
      }
      UNROLL for (u32 i = 0u; i < AHEAD; ++i) {
        UNROLL for (u32 j = WIDTH - 1u; j > 0u; --j) {
          past[j] = past[j - 1u];
          slope[j] = slope[j - 1u];
        }
        past[0] = asked[i];
        slope[0] = gradient[i];
        if (silu) {
          FLOAT4 sum = bias;
          UNROLL for (u32 j = 0u; j < WIDTH; ++j) sum += weight[j] * past[j];
          slope[0] *= SPACE_SILU_SLOPE4(sum);
        }
        UNROLL for (u32 j = 0u; j < WIDTH; ++j) dweight[j] += slope[0] * past[j];
        dbias += slope[0];
        if (makes_input) {
          FLOAT4 sum = zero;
          UNROLL for (u32 d = 0u; d < WIDTH; ++d) sum += weight[WIDTH - 1u - d] * slope[d];
          STORE_DINPUT_FOUR(sum, made + (token - i) * made_token);
        }
      }
      position -= AHEAD - 1u;
      continue;
    }
    const bool is_token = !is_state || position > begin + behind;
    if (CONV_HAS(CONV_PACKED) && !is_state && (anew || token < begin)) {
      SPACE_FIND(token)
      anew = true;
    }
    const bool reads = held && is_token;
    if (anew && reads) {
      UNROLL for (u32 j = 0u; j + 1u < WIDTH; ++j) CONV_TAKE(past[j], token, WIDTH - 2u - j) anew =
          false;
    }
    UNROLL for (u32 d = WIDTH - 1u; d > 0u; --d) slope[d] = slope[d - 1u];
    slope[0] = zero;
    if (reads) {
      UNROLL for (u32 j = WIDTH - 1u; j > 0u; --j) past[j] = past[j - 1u];
      CONV_TAKE(past[0], token, WIDTH - 1u)
      slope[0] = LOAD_GRADIENT(CONV_ROW(result, token), left);
      if (CONV_HAS(CONV_SILU)) {
        FLOAT4 sum = bias;
        UNROLL for (u32 j = 0u; j < WIDTH; ++j) sum += weight[j] * past[j];
        slope[0] *= SPACE_SILU_SLOPE4(sum);
      }
      if (!is_state && token < last) {
        UNROLL for (u32 j = 0u; j < WIDTH; ++j) dweight[j] += slope[0] * past[j];
        dbias += slope[0];
      }
    }
    if (is_state ? !is_token : token < last) {
      FLOAT4 sum = zero;
      if (held) {
        // Of outputs within the sequence.
        UNROLL for (u32 d = 0u; d < WIDTH; ++d) {
          if (position + d <= end + behind) sum += weight[WIDTH - 1u - d] * slope[d];
        }
        // The last inputs of a sequence are its final state, too.
        if (CONV_HAS(CONV_FINAL) && position > end)
          sum += LOAD_DFINAL(CONV_STATE(final_state, position - 1u - end), left);
      }
      if (is_state) {
        STORE_DINITIAL(sum, CONV_STATE(dinitial, position - 1u - begin), left);
      } else if (CONV_HAS(CONV_GRAD_INPUT)) {
        STORE_DINPUT(sum, CONV_ROW(dinput, token), left);
      }
    }
  }
  if (!is_state && CONV_HAS(CONV_GRAD_WEIGHT | CONV_GRAD_BIAS)) {
    const u32 at = ARGS(shares) + unit * (WIDTH + 1u) * vectors + vector;
    UNROLL for (u32 j = 0u; j < WIDTH; ++j) SHARE(at + j * vectors) = dweight[j];
    SHARE(at + WIDTH * vectors) = dbias;
  }
}
