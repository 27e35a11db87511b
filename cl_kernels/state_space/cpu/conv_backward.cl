// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a causal convolution: of inputs and states; shares of those of weights and bias to scratch.
// Who      A work-group is one item and owns TILE channels of consecutive tokens.
// Memory   Input and gradient once and WIDTH - 1 rows for a chunk, gradients once, past the caches with CONV_STREAM.
// Numerics Float; what stands before the activation is made once more.
// Assumes  Rows and states of strides below 2^32, weights and bias below 2^31 elements, shares below 2^31 floats;
//          common/boundaries has run for packed sequences.
#include "state_space/cpu/conv.clh"

// Tokens on their way: their inputs from WIDTH - 1 tokens before the first on, their gradients, none behind a sequence: null,
// and what becomes of the inputs WIDTH - 1 tokens before each: where their gradients go, and what is added to them.
typedef struct {
  const global scalar *rows[BEFORE + BLOCK], *gradient[BLOCK], *added;
  global scalar* to[BLOCK];
  const global scalar *next_row[BLOCK], *next_gradient[BLOCK];
  int nearest, furthest;  // of a single token: slopes from `nearest` to `furthest` - 1 tokens later count
  bool counts;            // in the gradients of taps
} ConvBack;

// `slopes` are those of the WIDTH - 1 tokens before: gradients of what stands before the activation.
#define CONV_GRADIENTS(name, TOKENS, WHOLE)                                                                                \
  INLINE void name(const ConvTaps* taps, ConvTaps* sums, FloatPair (*slopes)[BEFORE], int p, const ConvBack* back, int skip, \
                   int left, bool silu, bool taps_too, bool stream) {                                                      \
    const int d = p * PAIR_WIDTH;                                                                                          \
    FloatPair x[BEFORE + TOKENS], slope[BEFORE + TOKENS];                                                                  \
    UNROLL for (int j = 0; j < BEFORE + TOKENS; ++j) {                                                                     \
      const global scalar* row = back->rows[skip + j];                                                                     \
      x[j] = row ? load_row_pair(row + d, left - d, WHOLE) : no_pair();                                                    \
    }                                                                                                                      \
    UNROLL for (int j = 0; j < BEFORE; ++j) slope[j] = slopes[p][j];                                                       \
    UNROLL for (int i = 0; i < TOKENS; ++i) {                                                                              \
      if (WHOLE) {                                                                                                         \
        ask_for_pair(back->next_row[i] + d);                                                                               \
        ask_for_pair(back->next_gradient[i] + d);                                                                          \
      }                                                                                                                    \
      FloatPair now = no_pair();                                                                                           \
      const global scalar* gradient = back->gradient[skip + i];                                                            \
      if (gradient) {                                                                                                      \
        now = load_row_pair(gradient + d, left - d, WHOLE);                                                                \
        if (silu) {                                                                                                        \
          FloatPair sum = taps->of[p][BIAS];                                                                               \
          UNROLL for (int j = 0; j < WIDTH; ++j) sum = pair_add(taps->of[p][j], x[i + j], sum);                            \
          now.a *= silu_slope_vector(sum.a);                                                                               \
          now.b *= silu_slope_vector(sum.b);                                                                               \
        }                                                                                                                  \
      }                                                                                                                    \
      slope[BEFORE + i] = now;                                                                                             \
    }                                                                                                                      \
    if (taps_too && back->counts) {                                                                                        \
      UNROLL for (int j = 0; j <= WIDTH; ++j) {                                                                            \
        FloatPair sum = sums->of[p][j];                                                                                    \
        UNROLL for (int i = 0; i < TOKENS; ++i) {                                                                          \
          if (j < WIDTH) {                                                                                                 \
            sum = pair_add(slope[BEFORE + i], x[i + j], sum);                                                              \
          } else {                                                                                                         \
            sum.a += slope[BEFORE + i].a;                                                                                  \
            sum.b += slope[BEFORE + i].b;                                                                                  \
          }                                                                                                                \
        }                                                                                                                  \
        sums->of[p][j] = sum;                                                                                              \
      }                                                                                                                    \
    }                                                                                                                      \
    UNROLL for (int i = 0; i < TOKENS; ++i) {                                                                              \
      if (!back->to[skip + i]) continue;                                                                                   \
      FloatPair sum = no_pair();                                                                                           \
      UNROLL for (int n = 0; n < WIDTH; ++n) {                                                                             \
        if (WHOLE || (n >= back->nearest && n < back->furthest)) sum = pair_add(taps->of[p][BEFORE - n], slope[i + n], sum); \
      }                                                                                                                    \
      if (!(WHOLE) && back->added) {                                                                                       \
        const FloatPair more = load_pair_part(back->added + d, left - d);                                                  \
        sum.a += more.a;                                                                                                   \
        sum.b += more.b;                                                                                                   \
      }                                                                                                                    \
      store_row_pair(sum, back->to[skip + i] + d, left - d, WHOLE, stream);                                                \
    }                                                                                                                      \
    UNROLL for (int j = 0; j < BEFORE; ++j) slopes[p][j] = slope[TOKENS + j];                                              \
  }
CONV_GRADIENTS(block_gradients, BLOCK, true)
CONV_GRADIENTS(token_gradients, 1, false)

KERNEL void causal_conv1d_backward_cpu(
    const global scalar* restrict input_elements,
    const global void* restrict weight_elements,
    const global void* restrict bias_elements,
    const global scalar* restrict initial_elements,
    const global scalar* restrict doutput_elements,
    const global scalar* restrict dfinal_elements,
    global scalar* restrict dinput_elements,
    global scalar* restrict dinitial_elements,
    global float* restrict scratch,
    const struct ConvArgs args) {
  CONV_OWN
  const bool silu = CONV_HAS(CONV_SILU), taps_too = CONV_HAS(CONV_GRAD_WEIGHT | CONV_GRAD_BIAS);
  ConvTaps taps, sums;
  FloatPair slopes[TILE_PAIRS][BEFORE];
  load_taps(&taps, weight_elements, bias_elements, channel, left, args);
  const int pairs = (left + PAIR_WIDTH - 1) / PAIR_WIDTH, whole = left / PAIR_WIDTH;
  for (int p = 0; p < pairs; ++p) UNROLL for (int j = 0; j <= WIDTH; ++j) sums.of[p][j] = no_pair();

  for (uint flat = first; flat < last;) {
    CONV_FIND(flat)
    flat += stop - token;
    if (!held) {
      for (uint t = token; t < stop && CONV_HAS(CONV_GRAD_INPUT); ++t)
        copy_row(0, ROW_AT(dinput_elements, dinput, t), left, stream);
      continue;
    }
    for (int p = 0; p < pairs; ++p) UNROLL for (int j = 0; j < BEFORE; ++j) slopes[p][j] = no_pair();
    // Each token finishes the gradient of the input WIDTH - 1 tokens before it.
    ConvBack back;
    for (uint t = token; t < stop + BEFORE;) {
      back.counts = t < stop;
      if (t - token >= BEFORE && t + BLOCK <= stop) {
        UNROLL for (uint j = 0; j < BEFORE + BLOCK; ++j) back.rows[j] = ROW_AT(input_elements, source, t + j - BEFORE);
        UNROLL for (uint i = 0; i < BLOCK; ++i) {
          back.gradient[i] = ROW_AT(doutput_elements, result, t + i);
          back.to[i] = CONV_HAS(CONV_GRAD_INPUT) ? ROW_AT(dinput_elements, dinput, t + i - BEFORE) : 0;
          back.next_row[i] = ROW_AT(input_elements, source, t + i + BLOCK);
          back.next_gradient[i] = ROW_AT(doutput_elements, result, t + i + BLOCK);
        }
        for (int p = 0; p < whole; ++p)
          block_gradients(&taps, &sums, slopes, p, &back, 0, left, silu, taps_too, stream);
        back.nearest = 0;
        back.furthest = WIDTH;
        back.added = 0;
        if (whole < pairs) {
          ROLLED for (int i = 0; i < BLOCK; ++i)
            token_gradients(&taps, &sums, slopes, whole, &back, i, left, silu, taps_too, false);
        }
        t += BLOCK;
        continue;
      }
      const bool is_token = t < end;
      UNROLL for (uint j = 0; j < WIDTH; ++j) back.rows[j] = is_token ? INPUT_AT(t, BEFORE - j) : 0;
      back.gradient[0] = is_token ? ROW_AT(doutput_elements, result, t) : 0;
      back.to[0] = 0;
      back.added = 0;
      // The input is token t - (WIDTH - 1), or of the state.
      const bool is_state = t - begin < BEFORE;
      if (is_state && token == begin && CONV_HAS(CONV_GRAD_INITIAL))
        back.to[0] = STATE_AT(dinitial_elements, dinitial, sequence, t - begin);
      if (!is_state && t - token >= BEFORE && CONV_HAS(CONV_GRAD_INPUT))
        back.to[0] = ROW_AT(dinput_elements, dinput, t - BEFORE);
      if (CONV_HAS(CONV_FINAL) && t >= end) back.added = STATE_AT(dfinal_elements, final_state, sequence, t - end);
      // Of outputs within the sequence.
      back.nearest = is_state ? (int)(BEFORE - (t - begin)) : 0;
      back.furthest = t >= end ? (int)(WIDTH - 1 - (t - end)) : WIDTH;
      for (int p = 0; p < pairs; ++p) token_gradients(&taps, &sums, slopes, p, &back, 0, left, silu, taps_too, false);
      ++t;
    }
  }

  for (uint s = from; s < behind && CONV_HAS(CONV_GRAD_INITIAL); ++s) {
    if (!CONV_IS_EMPTY(s)) continue;
    for (uint r = 0; r < BEFORE; ++r) {
      const global scalar* given = CONV_HAS(CONV_FINAL) ? STATE_AT(dfinal_elements, final_state, s, r) : 0;
      copy_row(given, STATE_AT(dinitial_elements, dinitial, s, r), left, false);
    }
  }
  if (!taps_too) return;
  const uint row = (args.dim + 3u) / 4u * 4u;
  for (uint j = 0; j <= WIDTH; ++j) {
    const uint at = 4u * args.shares + (chunk * (WIDTH + 1u) + j) * row + channel;
    for (int p = 0; p < pairs; ++p) {
      floatv one, two;
      take_apart(sums.of[p][j], &one, &two);
      const int d = p * PAIR_WIDTH, second = left - d - VECTOR_WIDTH;
      store_typed_part(one, scratch, at + (uint)d, 1, left - d, DTYPE_F32);
      if (second > 0) store_typed_part(two, scratch, at + (uint)(d + VECTOR_WIDTH), 1, second, DTYPE_F32);
    }
  }
}
