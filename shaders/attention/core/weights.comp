// SPDX-License-Identifier: Apache-2.0
// What     weights[i,j] = keep[i,j] exp(score[i,j] - lse[i]), 0 where i does not see j; where lse is
//          too coarse, from the row's largest score and sum.
// Who      Item (x, y, z): key x, ATTN_WEIGHTS_ROWS rows from y on, batch and head z.
// Memory   One row of k for so many weights; queries by way of local memory.
// Numerics Float, features in order; base-2 exponentials; one rounding to DTYPE.
// Assumes  The table of rows is written, and log_sum_exp by the pass before.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/weights_args.h"
BUFFER_ARGS(AttentionWeightsCall, 11);
#define SCRATCH_BINDING 4
#include "attention/core/policy.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 2) readonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = 3) writeonly buffer Weights { scalar weights[]; };
#include "attention/core/row_peak.glsl"

shared vec4 queries[ATTN_WEIGHTS_FEATURES * ATTN_WEIGHTS_FOURS];
shared float products[ATTN_WEIGHTS_ROWS * WG_X];
shared float shifts[ATTN_WEIGHTS_ROWS], lesses[ATTN_WEIGHTS_ROWS];

// The first row from r on whose weights are not made from its log_sum_exp, which lie from `of_rows` on.
uint coarse_row(uint of_rows, uint r, uint rows) {
  while (r < rows && !is_coarse(log_sum_exp[of_rows + r])) ++r;
  return r;
}

void main() {
  const uint item = gl_LocalInvocationIndex, key = gl_GlobalInvocationID.x;
  const uint first_row = gl_WorkGroupID.y * ATTN_WEIGHTS_ROWS;
  const uint rows = min(uint(ATTN_WEIGHTS_ROWS), args.core.q_len - first_row);
  const uint batch = gl_GlobalInvocationID.z / args.core.heads;
  const uint head = gl_GlobalInvocationID.z % args.core.heads;
  const uint q_stride = args.core.q_stride_row;
  const uint query = args.core.q_offset + batch * args.core.q_stride_batch +
                     head * args.core.q_stride_head + first_row * q_stride;
  const uint keys_of_head = args.core.k_offset + batch * args.core.k_stride_batch +
                            head / args.core.group * args.core.k_stride_head;
  const uint of_key = keys_of_head + min(key, args.core.kv_len - 1u) * args.core.k_stride_row;

  // The keys that one of the rows may see.
  int begin = int(args.core.kv_len), end = 0;
  for (uint r = 0u; r < rows; ++r) {
    const RowPolicy policy = policy_row(batch, head, first_row + r);
    begin = min(begin, policy.first);
    end = max(end, policy.end);
  }
  const int first_key = int(gl_WorkGroupID.x * WG_X);
  const bool seen = first_key < end && first_key + int(WG_X) > begin;
  const uint head_dim = seen ? args.head_dim : 0u;

  vec4 sums[ATTN_WEIGHTS_FOURS];
  [[unroll]] for (uint r = 0u; r < ATTN_WEIGHTS_FOURS; ++r) sums[r] = vec4(0.0);
  for (uint from = 0u; from < head_dim; from += ATTN_WEIGHTS_FEATURES) {
    const uint features = min(uint(ATTN_WEIGHTS_FEATURES), head_dim - from);
    barrier();
    for (uint i = item; i < ATTN_WEIGHTS_FEATURES * ATTN_WEIGHTS_FOURS; i += WG_X) {
      const uint feature = i % ATTN_WEIGHTS_FEATURES, row = i / ATTN_WEIGHTS_FEATURES * 4u;
      vec4 x = vec4(0.0);
      if (feature < features) {
        const uint at = query + from + feature + row * q_stride;
        if (row < rows) x.x = load_scalar(q[at]);
        if (row + 1u < rows) x.y = load_scalar(q[at + q_stride]);
        if (row + 2u < rows) x.z = load_scalar(q[at + 2u * q_stride]);
        if (row + 3u < rows) x.w = load_scalar(q[at + 3u * q_stride]);
      }
      queries[feature * ATTN_WEIGHTS_FOURS + row / 4u] = x;
    }
    barrier();
    for (uint f = 0u; f < features; ++f) {
      const vec4 of = vec4(load_scalar(k[of_key + from + f]));
      [[unroll]] for (uint r = 0u; r < ATTN_WEIGHTS_FOURS; ++r)
        sums[r] = fma(of, queries[f * ATTN_WEIGHTS_FOURS + r], sums[r]);
    }
  }
  [[unroll]] for (uint r = 0u; r < ATTN_WEIGHTS_FOURS; ++r) {
    products[4u * r * WG_X + item] = sums[r].x;
    products[(4u * r + 1u) * WG_X + item] = sums[r].y;
    products[(4u * r + 2u) * WG_X + item] = sums[r].z;
    products[(4u * r + 3u) * WG_X + item] = sums[r].w;
  }

  // Rows whose largest scores all items look for.
  const uint of_rows = args.core.lse_offset + batch * args.core.lse_stride_batch +
                       head * args.core.lse_stride_head + first_row;
  for (uint r = coarse_row(of_rows, 0u, rows); r < rows; r = coarse_row(of_rows, r + 1u, rows)) {
    const PeakRow of_row = PeakRow(policy_row(batch, head, first_row + r), head, args.head_dim,
                                   query + r * q_stride, keys_of_head);
    const RowPeak peak = find_peak(of_row, item);
    if (item == 0u) {
      shifts[r] = peak.largest;
      lesses[r] = policy_less(peak.sum);
    }
    barrier();
  }

  for (uint r = 0u; r < rows && key < args.core.kv_len; ++r) {
    const RowPolicy policy = policy_row(batch, head, first_row + r);
    const float lse = log_sum_exp[of_rows + r];
    const bool coarse = is_coarse(lse);
    const float shift = coarse ? shifts[r] : policy_exponent(lse), less = coarse ? lesses[r] : 0.0;
    float weight = 0.0;
    if (policy_sees(policy, int(key))) {
      const float score =
          policy_score(policy, int(key), products[r * WG_X + item] * CORE(scale)).x;
      if (score != MASKED_SCORE)
        weight = exp2(policy_weight_exponent(score, shift, less)) *
                 policy_keep(policy, int(key));
    }
    weights[args.w_offset + batch * args.w_stride_batch + head * args.w_stride_head +
            (first_row + r) * args.w_stride_row + key] = store_scalar(weight);
  }
}
