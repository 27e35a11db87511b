// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/backward, REGISTERS=1: pairs stay in matrices, through VK_NV_cooperative_matrix2's
// calls per element and conversions. A number per query row comes as a matrix that is loaded with a stride of 0.
#ifndef TESSERA_ATTENTION_COOPERATIVE_BACKWARD_REGISTERS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_BACKWARD_REGISTERS_GLSL
#include "attention/cooperative/backward_products.glsl"

#if !OWN_KEYS
COOPERATIVE_SUM own_shift[ATTN_BACK_ROW_TILES], own_delta[ATTN_BACK_ROW_TILES];

void load_own_numbers() {
  for (uint at = item; at < ATTN_BACK_OWN; at += WG_X)
    store_numbers(0u, ATTN_BACK_OWN, at, numbers_of(raw_row(own_first + int(at)), own_first + int(at)));
  barrier();
  [[unroll]] for (uint r = 0u; r < ATTN_BACK_ROW_TILES; ++r) {
    const uint at = gl_SubgroupID * ROWS + r * MATRIX_M;
    coopMatLoad(own_shift[r], numbers, at, 0u, kColumnMajor);
    coopMatLoad(own_delta[r], numbers, ATTN_BACK_OWN + at, 0u, kColumnMajor);
  }
}
#endif

// x, or 0 where the row does not see the key; `away` is key - row of element (0, 0), of which columns [0, end) count.
float visible(const in uint row, const in uint column, const in float x, const in int away, const in int end,
              const in int low, const in int high) {
  const int across = OWN_KEYS != 0 ? int(row) - int(column) : int(column) - int(row);
  return away + across >= low && away + across <= high && int(column) < end ? x : 0.0;
}

// Of all pairs of the step, key - row.
struct Away {
  int least, most;
};
Away away_of(int first) {
  const int rows = int(ROWS) - 1, steps = int(STEP) - 1;
#if OWN_KEYS
  return Away(own_row - first - steps, own_row - first + rows);
#else
  return Away(first - own_row - rows, first - own_row + steps);
#endif
}

void differentiate(int first, uint stage, bool all_visible) {
  [[unroll]] for (uint i = 0u; i < PAIR_MATRICES; ++i) {
    const uint r = i / ATTN_BACK_PAIR_TILES, n = i % ATTN_BACK_PAIR_TILES;
#if OWN_KEYS
    COOPERATIVE_SUM shift, delta;
    const uint numbers_at = stage * 2u * STEP + n * MATRIX_N;
    coopMatLoad(shift, numbers, numbers_at, 0u, kRowMajor);
    coopMatLoad(delta, numbers, numbers_at + STEP, 0u, kRowMajor);
#define SHIFT shift
#define DELTA delta
#else
#define SHIFT own_shift[r]
#define DELTA own_delta[r]
#endif
    COOPERATIVE_SUM weight = score[i], logit = gradient[i];
    [[unroll]] for (int e = 0; e < weight.length(); ++e) {
      float x = weight[e] * inner, slope = 1.0;
      if (CAPPED != 0u) {
        const float t = saturating_tanh(x);
        x = outer * t;
        slope = 1.0 - t * t;
      }
      weight[e] = exp2(x - SHIFT[e]);
      logit[e] = weight[e] * (logit[e] - DELTA[e]) * slope;
    }
    if (!all_visible) {
      const int own = own_row + int(r * MATRIX_M), step = first + int(n * MATRIX_N);
      const int away = OWN_KEYS != 0 ? own - step : step - own, end = step_end - step;
#if OWN_KEYS
      coopMatPerElementNV(weight, weight, visible, away, end, band_low, band_high);
#endif
      coopMatPerElementNV(logit, logit, visible, away, end, band_low, band_high);
    }
#if DTYPE == DTYPE_BF16
    // Drivers may cut off bits when they narrow.
    [[unroll]] for (int e = 0; e < weight.length(); ++e) {
      weight[e] = uintBitsToFloat(narrow(weight[e]) << 16);
      logit[e] = uintBitsToFloat(narrow(logit[e]) << 16);
    }
#endif
    score[i] = weight;
    gradient[i] = logit;
  }
}

COOPERATIVE_LEFT weights(uint r, uint j) { return COOPERATIVE_LEFT(score[r * ATTN_BACK_PAIR_TILES + j]); }
COOPERATIVE_LEFT logit_gradients(uint r, uint j) {
  return COOPERATIVE_LEFT(gradient[r * ATTN_BACK_PAIR_TILES + j]);
}

void take_step(int first, uint stage) {
  const Away away = away_of(first);
  if (away.most < band_low || away.least > band_high) return;
  take_products(stage);
  // Behind the last row stand zeros, and zero times a row that is NaN is NaN.
  differentiate(first, stage,
                away.least >= band_low && away.most <= band_high && first + int(STEP) <= step_end);
  add_rows(stage);
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_BACKWARD_REGISTERS_GLSL
