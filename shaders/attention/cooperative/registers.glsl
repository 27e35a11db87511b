// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward, REGISTERS=1: scores become weights in matrices, through
// VK_NV_cooperative_matrix2's reductions of rows, calls per element and conversions.
//
// Keys are a step ahead of values: q k of the next step and the exponentials of this one do not
// wait for one another, and stand in one stretch of code without branches. Behind the last step
// follows one of zeros, which nobody looks at.
#ifndef TESSERA_ATTENTION_COOPERATIVE_REGISTERS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_REGISTERS_GLSL
#include "attention/cooperative/products.glsl"

COOPERATIVE_SUM score[ATTN_ROW_TILES * ATTN_KEY_TILES];  // then weights
COOPERATIVE_SUM row_max[ATTN_ROW_TILES], row_sum[ATTN_ROW_TILES];

float larger(const in float a, const in float b) { return max(a, b); }
float added(const in float a, const in float b) { return a + b; }
float hidden(const in uint row, const in uint column, const in float x, const in int first_tile_row,
             const in int first_key) {
  const int key = first_key + int(column), away = key - first_tile_row - int(row);
  return away >= CALL.band_low && away <= CALL.band_high && key < int(CALL.kv_len) ? x
                                                                                   : MASKED_SCORE;
}

// Scores in base 2, maxima of rows, and outputs follow them.
void raise_maxima(int first, bool all_visible) {
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    COOPERATIVE_SUM top = row_max[r];
    [[unroll]] for (uint n = 0u; n < ATTN_KEY_TILES; ++n) {
      COOPERATIVE_SUM part = score[r * ATTN_KEY_TILES + n] * inner;
      if (CAPPED != 0u)
        [[unroll]] for (int i = 0; i < part.length(); ++i) part[i] =
            outer * saturating_tanh(part[i]);
      if (!all_visible)
        coopMatPerElementNV(part, part, hidden, own_row + int(r * MATRIX_M),
                            first + int(n * MATRIX_N));
      [[unroll]] for (int i = 0; i < part.length(); ++i) top[i] = max(top[i], part[i]);
      score[r * ATTN_KEY_TILES + n] = part;
    }
    coopMatReduceNV(top, top, gl_CooperativeMatrixReduceRowNV, larger);
    COOPERATIVE_SUM rescale;
    bool rose = false;
    [[unroll]] for (int i = 0; i < top.length(); ++i) {
      if (top[i] <= row_max[r][i] + LAG) top[i] = row_max[r][i];
      rose = rose || top[i] > row_max[r][i];
      rescale[i] = exp2(row_max[r][i] - top[i]);
    }
    row_max[r] = top;
    if (subgroupAny(rose)) {
      row_sum[r] = row_sum[r] * rescale;
      [[unroll]] for (uint n = 0u; n < ATTN_VALUE_TILES; ++n) total[r * ATTN_VALUE_TILES + n] =
          total[r * ATTN_VALUE_TILES + n] * rescale;
    }
  }
}

void weigh() {
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    [[unroll]] for (uint n = 0u; n < ATTN_KEY_TILES; ++n) {
      COOPERATIVE_SUM weight;
      [[unroll]] for (int i = 0; i < weight.length(); ++i) weight[i] =
          exp2(score[r * ATTN_KEY_TILES + n][i] - row_max[r][i]);
      row_sum[r] = row_sum[r] + weight;
#if DTYPE == DTYPE_BF16
      // Drivers may cut off bits when they narrow.
      [[unroll]] for (int i = 0; i < weight.length(); ++i) weight[i] =
          uintBitsToFloat(narrow(weight[i]) << 16);
#endif
      score[r * ATTN_KEY_TILES + n] = weight;
    }
  }
}

COOPERATIVE_LEFT weights(uint r, uint j) { return COOPERATIVE_LEFT(score[r * ATTN_KEY_TILES + j]); }

// Outputs are divided by the sums of weights. A row that saw nothing has row_sum 0; a NaN in
// row_sum must show in both results.
void finish_rows() {
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    COOPERATIVE_SUM sum, norm, lse;
    coopMatReduceNV(sum, row_sum[r], gl_CooperativeMatrixReduceRowNV, added);
    [[unroll]] for (int i = 0; i < sum.length(); ++i) {
      norm[i] = sum[i] == 0.0 ? 0.0 : 1.0 / sum[i];
      lse[i] = sum[i] == 0.0 ? uintBitsToFloat(0xff800000u) : (row_max[r][i] + log2(sum[i])) * LN_2;
    }
    [[unroll]] for (uint n = 0u; n < ATTN_VALUE_TILES; ++n) total[r * ATTN_VALUE_TILES + n] =
        total[r * ATTN_VALUE_TILES + n] * norm;
    if (CALL.write_lse != 0u)
      coopMatStore(lse, memory, own + r * MATRIX_M * ATTN_S_STRIDE, ATTN_S_STRIDE, kRowMajor);
  }
  subgroupBarrier();
  if (CALL.write_lse != 0u) {
    for (uint at = lane; at < ROWS; at += LANES) {
      const int row = own_row + int(at);
      if (row < end_row)
        log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head +
                    uint(row)] = uintBitsToFloat(memory[own + at * ATTN_S_STRIDE].x);
    }
  }
  subgroupBarrier();
}

void attend() {
  const Interval at = interval_of(end_row - 1);
  end_key = at.end;
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    row_max[r] = COOPERATIVE_SUM(LOWEST_MAXIMUM);
    row_sum[r] = COOPERATIVE_SUM(0.0);
  }
  uint buffer_at = 0u;
  int first = at.first / int(BLOCK_K) * int(BLOCK_K);
  fetch_keys(first);
  store_keys(buffer_at);
  barrier();
  multiply_keys(buffer_at);
  barrier();
  fetch_keys(first + int(BLOCK_K));
  fetch_values(first);
  store_keys(buffer_at);
  store_values(buffer_at);
  barrier();
  for (; first < end_key; first += int(BLOCK_K)) {
    const int next = first + int(BLOCK_K);
    if (PREFETCH != 0u) {
      fetch_keys(next + int(BLOCK_K));
      fetch_values(next);
    }
    [[unroll]] for (uint i = 0u; i < ATTN_ROW_TILES * ATTN_KEY_TILES; ++i) score[i] = product[i];
    raise_maxima(first, first >= at.common_first && next <= at.common_end);
    multiply_keys(buffer_at);
    weigh();
    add_values(buffer_at);
    if (BUFFERS == 1u) barrier();
    if (BUFFERS == 2u) buffer_at = ATTN_K_AREA + ATTN_V_AREA - buffer_at;
    if (PREFETCH == 0u) {
      fetch_keys(next + int(BLOCK_K));
      fetch_values(next);
    }
    store_keys(buffer_at);
    store_values(buffer_at);
    barrier();
  }
  finish_rows();
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_REGISTERS_GLSL
