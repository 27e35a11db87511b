// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward, REGISTERS=0: scores become weights in local memory, where
// a lane has whole rows or parts of them; all policies. A factor per row comes back as a matrix
// that is loaded with a stride of 0: each of its columns is the same.
#ifndef TESSERA_ATTENTION_COOPERATIVE_LOCAL_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_LOCAL_GLSL
#include "attention/cooperative/products.glsl"
#include "lib/cooperative/elements.glsl"

shared float factors[ATTN_BLOCK_Q];  // one number per row, on its way to a matrix

// Rows row_at + LANES i of the sub-group, keys 8 (part + ATTN_PARTS g) + 0..7 of the step.
uint row_at, part;
float row_max[ATTN_ITEM_ROWS], row_sum[ATTN_ITEM_ROWS];

#if POLICY
// What the map of tiles says about the tile at key `first`.
uint tile_state(int first) {
  if ((RULE(features) & POLICY_MAP) == 0u) return MAP_SOME;
  return map_words[RULE(map) + batch * RULE(map_stride_batch) +
                   head / RULE(mask.group) * RULE(map_stride_head) +
                   uint(first_row) / ATTN_BLOCK_Q * RULE(map_stride_row) + uint(first) / BLOCK_K];
}
#else
#define MAP_SOME 1u
#define MAP_NOTHING 0u
uint tile_state(int first) { return MAP_SOME; }
#endif

// The first step from `first` on that some row may see.
int next_step(int first) {
  while (first < end_key && tile_state(first) == MAP_NOTHING) first += int(BLOCK_K);
  return first;
}

void start_rows() {
  row_at = lane % ROWS;
  part = lane / ROWS;
  [[unroll]] for (uint i = 0u; i < ATTN_ITEM_ROWS; ++i) {
    row_max[i] = LOWEST_MAXIMUM;
    row_sum[i] = 0.0;
  }
}

// Products become weights, and outputs follow the maximum.
void weigh(int first, bool all_visible) {
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    [[unroll]] for (uint n = 0u; n < ATTN_KEY_TILES; ++n)
        coopMatStore(product[r * ATTN_KEY_TILES + n], memory,
                     own + r * MATRIX_M * ATTN_S_STRIDE + n * MATRIX_N / 4u, ATTN_S_STRIDE, kRowMajor);
  }
  subgroupBarrier();
  bool rose = false;
  vec4 part_score[ATTN_ITEM_ROWS * ATTN_ITEM_GROUPS * 2u];
  [[unroll]] for (uint i = 0u; i < ATTN_ITEM_ROWS; ++i) {
    const uint line = own + (row_at + LANES * i) * ATTN_S_STRIDE;
    const int row = own_row + int(row_at + LANES * i);
    float top = row_max[i];
#if POLICY
    const uint features = args.policy.features;
    const bool hides = (features & POLICY_HIDES) != 0u && tile_state(first) != MAP_ALL;
    const bool plain = all_visible && !hides && (features & POLICY_ADDS) == 0u && CAPPED == 0u;
    RowPolicy policy;
    if (row < end_row) policy = policy_row(batch, head, uint(row));
#endif
    [[unroll]] for (uint g = 0u; g < ATTN_ITEM_GROUPS * 2u; ++g) {
      const uint column = (part + ATTN_PARTS * (g / 2u)) * 8u + g % 2u * 4u;
      vec4 x = uintBitsToFloat(memory[line + column / 4u]);
#if POLICY
      if (plain) {
        x *= inner;
      } else {
        [[unroll]] for (int c = 0; c < 4; ++c) {
          const int key = first + int(column) + c;
          x[c] = row < end_row && policy_sees(policy, key)
                     ? policy_score(policy, key, x[c] * CALL.scale).x
                     : MASKED_SCORE;
        }
      }
#else
      x *= inner;
      if (CAPPED != 0u)
        [[unroll]] for (int c = 0; c < 4; ++c) x[c] = outer * saturating_tanh(x[c]);
      if (!all_visible) {
        [[unroll]] for (int c = 0; c < 4; ++c) {
          const int key = first + int(column) + c, away = key - row;
          if (away < args.band_low || away > args.band_high || key >= int(args.kv_len))
            x[c] = MASKED_SCORE;
        }
      }
#endif
      top = max(top, max(max(x.x, x.y), max(x.z, x.w)));
      part_score[i * ATTN_ITEM_GROUPS * 2u + g] = x;
    }
    [[unroll]] for (uint away = ROWS; away < LANES; away *= 2u) top =
        max(top, subgroupShuffleXor(top, away));
#if POLICY
    if ((features & POLICY_UNNORMALIZED) == 0u)
#endif
      if (top <= row_max[i] + LAG) top = row_max[i];
    const float rescale = exp2(row_max[i] - top);
    rose = rose || top > row_max[i];
    row_max[i] = top;
    row_sum[i] *= rescale;
    if (part == 0u) factors[gl_SubgroupID * ROWS + row_at + LANES * i] = rescale;
  }
  // Weights lie where scores did: all lanes must have read theirs.
  subgroupBarrier();
  [[unroll]] for (uint i = 0u; i < ATTN_ITEM_ROWS; ++i) {
    const uint line = own + (row_at + LANES * i) * ATTN_S_STRIDE;
    [[unroll]] for (uint g = 0u; g < ATTN_ITEM_GROUPS; ++g) {
      const uint from = (i * ATTN_ITEM_GROUPS + g) * 2u;
      vec4 low = exp2(part_score[from] - row_max[i]);
      vec4 high = exp2(part_score[from + 1u] - row_max[i]);
      row_sum[i] += ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
#if POLICY
      const uint row = uint(own_row) + row_at + LANES * i;
      if ((args.policy.features & POLICY_DROPOUT) != 0u && int(row) < end_row) {
        const RowPolicy policy = policy_row(batch, head, row);
        const int key = first + int((part + ATTN_PARTS * g) * 8u);
        [[unroll]] for (int c = 0; c < 4; ++c) {
          low[c] *= policy_keep(policy, key + c);
          high[c] *= policy_keep(policy, key + 4 + c);
        }
      }
#endif
      memory[line + part + ATTN_PARTS * g] = uvec4(narrow_pair(low.xy), narrow_pair(low.zw),
                                              narrow_pair(high.xy), narrow_pair(high.zw));
    }
  }
  subgroupBarrier();
  if (subgroupAny(rose)) {
    [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
      COOPERATIVE_SUM rescale;
      coopMatLoad(rescale, factors, gl_SubgroupID * ROWS + r * MATRIX_M, 0u, kColumnMajor);
      [[unroll]] for (uint n = 0u; n < ATTN_VALUE_TILES; ++n) total[r * ATTN_VALUE_TILES + n] =
          total[r * ATTN_VALUE_TILES + n] * rescale;
    }
  }
}

COOPERATIVE_LEFT weights(uint r, uint j) {
  COOPERATIVE_LEFT weight;
  coopMatLoad(weight, memory, own + r * MATRIX_M * ATTN_S_STRIDE + j * MATRIX_K / 8u, ATTN_S_STRIDE,
              kRowMajor);
  return weight;
}

// Outputs are divided by the sums of weights. A row that saw nothing has row_sum 0; a NaN in
// row_sum must show in both results.
void finish_rows() {
  [[unroll]] for (uint i = 0u; i < ATTN_ITEM_ROWS; ++i) {
    [[unroll]] for (uint away = ROWS; away < LANES; away *= 2u) row_sum[i] +=
        subgroupShuffleXor(row_sum[i], away);
    const int row = own_row + int(row_at + LANES * i);
#if POLICY
    const vec2 all = policy_sinks(head, row_max[i], row_sum[i]);
    const float shrink = exp2(row_max[i] - all.x);
    const float norm = all.y == 0.0                                         ? 0.0
                       : (args.policy.features & POLICY_UNNORMALIZED) != 0u ? shrink
                                                                            : shrink / all.y;
    const float lse = policy_log_sum_exp(all.x, all.y);
#else
    const vec2 all = vec2(row_max[i], row_sum[i]);
    const float norm = all.y == 0.0 ? 0.0 : 1.0 / all.y;
    const float lse = (all.x + log2(all.y)) * LN_2;
#endif
    if (part != 0u) continue;
    factors[gl_SubgroupID * ROWS + row_at + LANES * i] = norm;
    if (CALL.write_lse != 0u && row < end_row)
      log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head +
                  uint(row)] =
          all.y == 0.0 ? uintBitsToFloat(0xff800000u) : lse;
  }
  subgroupBarrier();
  [[unroll]] for (uint r = 0u; r < ATTN_ROW_TILES; ++r) {
    COOPERATIVE_SUM norm;
    coopMatLoad(norm, factors, gl_SubgroupID * ROWS + r * MATRIX_M, 0u, kColumnMajor);
    [[unroll]] for (uint n = 0u; n < ATTN_VALUE_TILES; ++n) total[r * ATTN_VALUE_TILES + n] =
        total[r * ATTN_VALUE_TILES + n] * norm;
  }
}

void attend() {
  const Interval at = interval_of(end_row - 1);
  end_key = at.end;
  start_rows();
  uint buffer_at = 0u;
  int first = next_step(at.first / int(BLOCK_K) * int(BLOCK_K));
  if (first < end_key) {
    fetch_keys(first);
    fetch_values(first);
    store_keys(buffer_at);
    store_values(buffer_at);
  }
  barrier();
  while (first < end_key) {
    const int next = next_step(first + int(BLOCK_K));
    if (PREFETCH != 0u && next < end_key) {
      fetch_keys(next);
      fetch_values(next);
    }
    multiply_keys(buffer_at);
    weigh(first, first >= at.common_first && first + int(BLOCK_K) <= at.common_end);
    add_values(buffer_at);
    if (BUFFERS == 1u) barrier();
    if (BUFFERS == 2u) buffer_at = ATTN_K_AREA + ATTN_V_AREA - buffer_at;
    if (next < end_key) {
      if (PREFETCH == 0u) {
        fetch_keys(next);
        fetch_values(next);
      }
      store_keys(buffer_at);
      store_values(buffer_at);
    }
    barrier();
    first = next;
  }
  finish_rows();
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_LOCAL_GLSL
