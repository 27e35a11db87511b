// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/forward: rows of a sub-group without matrices, for those whose outputs
// met a number that is not finite: a hidden key's weight is 0, and 0 times NaN is NaN. Here only keys
// that the row sees are ever looked at, and what is not finite reaches what the definition says.
//
// A lane has one of LANES keys while they get their weights, then columns lane + LANES c of values.
#ifndef TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
#include "attention/cooperative/tiles.glsl"

#define EXACT_COLUMNS ATTN_MATRICES(VALUE_DIM, LANES)

// A visible key's weight in units of the largest: above 0 wherever double has it, so that small ones
// still take infinities along.
const float kLeastWeight = 1.1754944e-38, kLeastExponent = -1075.0;
float exact_weight(float score, float most) {
  const float weight = exp2(score - most);
  return weight < kLeastWeight && score - most > kLeastExponent ? kLeastWeight : weight;
}

// In base 2.
float exact_dot(int row, int key) {
  const uint q_at = q_base + uint(row) * CALL.q_stride_row;
  const uint k_at = k_base + key_at(uint(key), CALL.k_stride_row, CALL.k_stride_batch);
  float x = 0.0;
  [[dont_unroll]] for (uint d = 0u; d < HEAD_DIM; ++d) x +=
      load_scalar(q[q_at + d]) * load_scalar(k[k_at + d]);
  return x;
}

// The maximum of all lanes, or their sum.
float all_lanes(float x, bool is_sum) {
  [[unroll]] for (uint away = 1u; away < LANES; away *= 2u) {
    const float other = subgroupShuffleXor(x, away);
    x = is_sum ? x + other : max(x, other);
  }
  return x;
}

void store_exact_row(int row) {
#if POLICY
  const RowPolicy policy = policy_row(batch, head, uint(row));
  const int begin = policy.first, end = policy.end;
#else
  const int begin = max(row + args.band_low, 0);
  const int end = min(row + args.band_high + 1, int(args.kv_len));
#endif
  float most = LOWEST_MAXIMUM, sum = 0.0, output_sum[EXACT_COLUMNS];
  [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) output_sum[c] = 0.0;
  for (int first = begin; first < end; first += int(LANES)) {
    const int key = first + int(lane);
#if POLICY
    bool visible = key < end && policy_sees(policy, key);
#else
    bool visible = key < end;
#endif
    float score = MASKED_SCORE;
    if (visible) {
      score = exact_dot(row, key);
#if POLICY
      score = policy_score(policy, key, score * CALL.scale).x;
#else
      score = CAPPED != 0u ? outer * saturating_tanh(inner * score) : inner * score;
#endif
    }
    visible = visible && score != MASKED_SCORE;
    if (!subgroupAny(visible)) continue;
    const float now = max(most, all_lanes(score, false)), shrink = exact_weight(most, now);
    most = now;
    const float weight = visible ? exact_weight(score, most) : 0.0;
    sum = sum * shrink + weight;
    float factor = visible ? weight : -1.0;  // no weight is negative
#if POLICY
    if (visible && (args.policy.features & POLICY_DROPOUT) != 0u)
      factor *= policy_keep(policy, key);
#endif
    [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) output_sum[c] *= shrink;
    [[dont_unroll]] for (uint n = 0u; n < LANES; ++n) {
      const float of_key = subgroupShuffle(factor, n);
      if (of_key < 0.0) continue;
      const uint v_at = v_base + key_at(uint(first + int(n)), CALL.v_stride_row, CALL.v_stride_batch);
      [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) {
        const uint column = lane + LANES * c;
        if (column < VALUE_DIM) output_sum[c] += of_key * load_scalar(v[v_at + column]);
      }
    }
  }
  sum = all_lanes(sum, true);
#if POLICY
  const vec2 all = policy_sinks(head, most, sum);
  const float shrink = exp2(most - all.x);
  const float norm = all.y == 0.0                                         ? 0.0
                     : (args.policy.features & POLICY_UNNORMALIZED) != 0u ? shrink
                                                                          : shrink / all.y;
#else
  const float norm = sum == 0.0 ? 0.0 : 1.0 / sum;
#endif
  const uint to = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head +
                  uint(row) * CALL.o_stride_row;
  [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) {
    const uint column = lane + LANES * c;
    if (column < VALUE_DIM) o[to + column] = store_scalar(output_sum[c] * norm);
  }
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
