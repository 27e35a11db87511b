// SPDX-License-Identifier: Apache-2.0
// Rows of a sub-group without matrices, for those whose outputs met a number that is not finite: a hidden
// key's weight is 0, and 0 times NaN is NaN. Here only keys that the row sees are ever looked at, and what
// is not finite reaches what the definition says.
//
// A lane has one of LANES keys while they get their weights, then columns lane + LANES c of values. The shader
// has declared operands, `lane`, where keys and values of the kv head begin, and factors of a score.
#ifndef TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
#include "attention/core/exact_weight.glsl"
#include "attention/core/key_rows.glsl"

#define EXACT_COLUMNS ((VALUE_DIM + LANES - 1u) / LANES)
float exact_sums[EXACT_COLUMNS];  // of a row's output

#if CODES
#define EXACT_SCALAR(codes, at) \
  from_storage(CODE_TYPE, CODE_TYPE == DTYPE_I4 ? LOAD_HALF_BYTE(codes, at) : LOAD_BYTE(codes, at))
#else
#define EXACT_SCALAR(elements, at) load_scalar(elements[at])
#endif

float exact_dot(uint q_at, int key) {
  const uint k_at = k_base + key_at(uint(key), CALL.k_stride_row, CALL.k_stride_batch);
  float x = 0.0;
  [[dont_unroll]] for (uint d = 0u; d < HEAD_DIM; ++d) x += load_scalar(q[q_at + d]) * EXACT_SCALAR(k, k_at + d);
#if CODES
  x *= SCALE_AT(key_scale, args.key_scales, uint(key));
#endif
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

// {largest score, sum of weights} of a row of `of_head` whose query lies at q_at, over the keys [begin, end) that it sees.
vec2 exact_row(uint of_head, uint row, uint q_at, int begin, int end) {
#if POLICY
  const RowPolicy policy = policy_row(batch, of_head, row);
#endif
  float most = LOWEST_MAXIMUM, sum = 0.0;
  [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) exact_sums[c] = 0.0;
  for (int first = begin; first < end; first += int(LANES)) {
    const int key = first + int(lane);
#if POLICY
    bool visible = key < end && policy_sees(policy, key);
#else
    bool visible = key < end;
#endif
    float score = MASKED_SCORE;
    if (visible) {
      score = exact_dot(q_at, key);
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
    [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) exact_sums[c] *= shrink;
    [[dont_unroll]] for (uint n = 0u; n < LANES; ++n) {
      float of_key = subgroupShuffle(factor, n);
      if (of_key < 0.0) continue;
#if CODES
      of_key *= SCALE_AT(value_scale, args.value_scales, uint(first) + n);
#endif
      const uint v_at = v_base + key_at(uint(first + int(n)), CALL.v_stride_row, CALL.v_stride_batch);
      [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c) {
        const uint column = lane + LANES * c;
        if (column < VALUE_DIM) exact_sums[c] += of_key * EXACT_SCALAR(v, v_at + column);
      }
    }
  }
  return vec2(most, all_lanes(sum, true));
}

#endif  // TESSERA_ATTENTION_COOPERATIVE_EXACT_GLSL
