// SPDX-License-Identifier: Apache-2.0
// What the backward kernels of all ways share: the arguments and operands of a call, and what a (row, key) pair adds to
// the gradients. The including shader has defined SCRATCH_BINDING, after which follow the policies (POLICY=1), then the
// arguments, and where exp2 will not do PAIR_WEIGHT, the weight of an exponent.
#ifndef TESSERA_ATTENTION_CORE_GRADIENTS_GLSL
#define TESSERA_ATTENTION_CORE_GRADIENTS_GLSL
#include "lib/prelude.glsl"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/core/score.h"
#ifndef PAIR_WEIGHT
#define PAIR_WEIGHT(exponent) exp2(exponent)
#endif
#if POLICY
BUFFER_ARGS(AttentionBackwardCall, SCRATCH_BINDING + 7);
#include "attention/core/policy.glsl"
#else
BUFFER_ARGS(AttentionBackwardCall, SCRATCH_BINDING + 1);
#endif

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 3) readonly buffer OutputGradient { scalar g[]; };
layout(std430, binding = 4) readonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) buffer Scratch { float scratch[]; };

uint item;
uint batch, head;
uint q_base, k_base, v_base, g_base, lse_base, delta_base;  // element 0 of this (batch, head)
// Rows from there on are never read: memory may hold NaN there.
int end_row, end_key;

// What a query row brings to all of its pairs.
struct Row {
#if POLICY
  RowPolicy policy;
  int peak;          // the key whose score is the shift, where weights aren't divided by their sum
  float peak_delta;  // what its gradient loses
  float less;        // weights are exp2(score - shift - less)
#else
  int first, end;  // the keys that it sees
#endif
  float shift;  // weights are exp2(score - shift)
  float delta;
};

// A row that saw nothing sees nothing here: its log_sum_exp is -inf.
Row load_row(int index) {
  Row row;
  const bool exists = index < int(args.core.q_len);
  float lse = 0.0;
  if (exists) lse = log_sum_exp[lse_base + uint(index)];
  const bool counts = exists && floatBitsToUint(lse) != 0xff800000u;
  row.delta = 0.0;
  if (counts) row.delta = scratch[delta_base + uint(index)];
#if POLICY
  row.shift = policy_exponent(lse);
  row.less = 0.0;
  row.policy = policy_row(batch, head, counts ? uint(index) : 0u);
  if (!counts) row.policy.end = row.policy.first;
  row.peak = -1;
  row.peak_delta = 0.0;
  const uint features = args.policy.features;
  if (counts && (features & (POLICY_UNNORMALIZED | POLICY_ADDS)) != 0u) {
    const ivec4 peak =
        policy_rows[args.gradient.peaks + (batch * args.core.heads + head) * args.core.q_len +
                    uint(index)];
    row.shift = intBitsToFloat(peak.x);
    row.less = intBitsToFloat(peak.z);
    row.peak = peak.y;
  }
  if ((features & POLICY_UNNORMALIZED) != 0u) {
    row.peak_delta = row.delta;
    row.delta = 0.0;
  }
#else
  row.shift = lse * LOG2_E;
  const int kv_len = int(args.core.kv_len);
  row.first = index + args.core.band_low;
  row.end = counts ? min(index + args.core.band_high + 1, kv_len) : 0;
#endif
  return row;
}

// A pair's weight in the gradient of the value, and the gradients of its scaled logit and bias.
struct Pair {
  bool seen;
  float weight, logit, bias;
};

// q_dot_k, weight_gradient = do.v
Pair pair_of(Row row, int key, float q_dot_k, float weight_gradient) {
  Pair pair = Pair(false, 0.0, 0.0, 0.0);
  const float scale = args.core.scale;
#if POLICY
  if (!policy_sees(row.policy, key)) return pair;
  const vec2 score = policy_score(row.policy, key, scale * q_dot_k);
  if (score.x == MASKED_SCORE) return pair;
  const float keep = policy_keep(row.policy, key);
#else
  if (key < row.first || key >= row.end) return pair;
  const float cap = args.core.soft_cap, keep = 1.0;
  vec2 score = vec2(scale * LOG2_E * q_dot_k, 1.0);
  if (cap > 0.0) {
    const float t = saturating_tanh(scale / cap * q_dot_k);
    score = vec2(cap * LOG2_E * t, 1.0 - t * t);
  }
#endif
#if POLICY
  const float p = PAIR_WEIGHT(policy_weight_exponent(score.x, row.shift, row.less));
#else
  const float p = PAIR_WEIGHT(score.x - row.shift);
#endif
  float gradient_here = p * (keep * weight_gradient - row.delta);
#if POLICY
  if (key == row.peak) gradient_here -= row.peak_delta;
#endif
  pair.seen = true;
  pair.weight = keep * p;
  pair.logit = gradient_here * score.y;
  pair.bias = pair.logit;
#if POLICY
  if ((args.policy.features & POLICY_BIAS_AFTER_CAP) != 0u) pair.bias = gradient_here;
#endif
  return pair;
}

// Where the rows of a query head, and of its keys and values, begin.
void enter_head(uint query_head) {
  head = query_head;
  q_base = args.core.q_offset + batch * args.core.q_stride_batch + head * args.core.q_stride_head;
  g_base = args.gradient.do_offset + batch * args.gradient.do_stride_batch +
           head * args.gradient.do_stride_head;
  lse_base =
      args.core.lse_offset + batch * args.core.lse_stride_batch + head * args.core.lse_stride_head;
  delta_base = args.gradient.delta + (batch * args.core.heads + head) * args.core.q_len;
  const uint kv_head = head / args.core.group;
  k_base =
      args.core.k_offset + batch * args.core.k_stride_batch + kv_head * args.core.k_stride_head;
  v_base =
      args.core.v_offset + batch * args.core.v_stride_batch + kv_head * args.core.v_stride_head;
}

#endif  // TESSERA_ATTENTION_CORE_GRADIENTS_GLSL
