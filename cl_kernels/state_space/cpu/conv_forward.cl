// SPDX-License-Identifier: Apache-2.0
// What     A causal convolution of few taps along tokens, for each channel by itself, with or without silu; the last inputs.
// Who      A work-group is one item and owns TILE channels of consecutive tokens.
// Memory   Input once and WIDTH - 1 rows for a chunk, output once, past the caches with CONV_STREAM.
// Numerics Float, tap after tap; one rounding of each output.
// Assumes  Rows and states of strides below 2^32, weights and bias below 2^31 elements; common/boundaries has run for packed sequences.
#include "state_space/cpu/conv.clh"

// Outputs of TOKENS tokens; rows[j] is WIDTH - 1 tokens before the first of them and on, ahead[i] where to ask for more.
#define CONV_OUTPUTS(name, TOKENS, WHOLE)                                                                                  \
  INLINE void name(const ConvTaps* taps, int p, const global scalar* const* rows, const global scalar* const* ahead,       \
                   global scalar* const* to, int left, bool silu, bool stream) {                                           \
    const int d = p * PAIR_WIDTH;                                                                                          \
    FloatPair x[BEFORE + TOKENS];                                                                                          \
    UNROLL for (int j = 0; j < BEFORE + TOKENS; ++j) x[j] = rows[j] ? load_row_pair(rows[j] + d, left - d, WHOLE) : no_pair(); \
    UNROLL for (int i = 0; i < TOKENS; ++i) {                                                                              \
      if (ahead) ask_for_pair(ahead[i] + d);                                                                               \
      FloatPair sum = taps->of[p][BIAS];                                                                                   \
      UNROLL for (int j = 0; j < WIDTH; ++j) sum = pair_add(taps->of[p][j], x[i + j], sum);                                \
      if (silu) {                                                                                                          \
        sum.a = silu_vector(sum.a);                                                                                        \
        sum.b = silu_vector(sum.b);                                                                                        \
      }                                                                                                                    \
      store_row_pair(sum, to[i] + d, left - d, WHOLE, stream);                                                             \
    }                                                                                                                      \
  }
CONV_OUTPUTS(block_outputs, BLOCK, true)
CONV_OUTPUTS(token_outputs, 1, false)

KERNEL void causal_conv1d_forward_cpu(
    const global scalar* restrict input_elements,
    const global void* restrict weight_elements,
    const global void* restrict bias_elements,
    const global scalar* restrict initial_elements,
    global scalar* restrict output_elements,
    global scalar* restrict final_elements,
    const global float* restrict scratch,
    const struct ConvArgs args) {
  CONV_OWN
  const bool silu = CONV_HAS(CONV_SILU);
  ConvTaps taps;
  load_taps(&taps, weight_elements, bias_elements, channel, left, args);

  for (uint flat = first; flat < last;) {
    CONV_FIND(flat)
    flat += stop - token;
    if (!held) {
      for (uint t = token; t < stop; ++t) copy_row(0, ROW_AT(output_elements, result, t), left, stream);
      continue;
    }
    uint t = token;
    while (t < stop) {
      const bool is_block = t - begin >= BEFORE && stop - t >= BLOCK;
      const global scalar *rows[BEFORE + BLOCK], *ahead[BLOCK];
      global scalar* to[BLOCK];
      if (is_block) {
        UNROLL for (uint j = 0; j < BEFORE + BLOCK; ++j) rows[j] = ROW_AT(input_elements, source, t + j - BEFORE);
        UNROLL for (uint i = 0; i < BLOCK; ++i) {
          ahead[i] = ROW_AT(input_elements, source, t + i + BLOCK);
          to[i] = ROW_AT(output_elements, result, t + i);
        }
        const int whole = left / PAIR_WIDTH;
        if (silu) {
          for (int p = 0; p < whole; ++p) block_outputs(&taps, p, rows, ahead, to, left, true, stream);
        } else {
          for (int p = 0; p < whole; ++p) block_outputs(&taps, p, rows, ahead, to, left, false, stream);
        }
        if (whole * PAIR_WIDTH < left) {
          ROLLED for (int i = 0; i < BLOCK; ++i) token_outputs(&taps, whole, rows + i, 0, to + i, left, silu, false);
        }
        t += BLOCK;
        continue;
      }
      UNROLL for (uint j = 0; j < WIDTH; ++j) rows[j] = INPUT_AT(t, BEFORE - j);
      to[0] = ROW_AT(output_elements, result, t);
      for (int p = 0; p * PAIR_WIDTH < left; ++p) token_outputs(&taps, p, rows, 0, to, left, silu, false);
      ++t;
    }
    if (CONV_HAS(CONV_FINAL) && stop == end) {
      for (uint r = 0; r < BEFORE; ++r)
        copy_row(INPUT_AT(end, BEFORE - r), STATE_AT(final_elements, final_state, sequence, r), left, stream);
    }
  }

  if (!CONV_HAS(CONV_FINAL)) return;
  for (uint s = from; s < behind; ++s) {
    if (!CONV_IS_EMPTY(s)) continue;
    for (uint r = 0; r < BEFORE; ++r) {
      const global scalar* given = CONV_HAS(CONV_INITIAL) ? STATE_AT(initial_elements, initial_state, s, r) : 0;
      copy_row(given, STATE_AT(final_elements, final_state, s, r), left, stream);
    }
  }
}
