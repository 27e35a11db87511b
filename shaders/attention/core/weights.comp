// SPDX-License-Identifier: Apache-2.0
// What     weights[i,j] = keep[i,j] exp(score[i,j] - lse[i]), 0 where i does not see j; where lse is
//          too coarse, from the row's largest score and sum.
// Who      Item (x, y, z): key x, row y, batch and head z.
// Memory   One row of q and one of k per weight: this is the operation that spells the matrix out.
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

void main() {
  const uint key = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
  const uint batch = gl_GlobalInvocationID.z / args.core.heads;
  const uint head = gl_GlobalInvocationID.z % args.core.heads;
  const PeakRow from = PeakRow(
      policy_row(batch, head, row), head, args.head_dim,
      args.core.q_offset + batch * args.core.q_stride_batch + head * args.core.q_stride_head +
          row * args.core.q_stride_row,
      args.core.k_offset + batch * args.core.k_stride_batch +
          head / args.core.group * args.core.k_stride_head);
  const float lse = log_sum_exp[args.core.lse_offset + batch * args.core.lse_stride_batch +
                                head * args.core.lse_stride_head + row];
  float shift = policy_exponent(lse), less = 0.0;
  if (is_coarse(lse)) {  // of all items' row
    const RowPeak peak = find_peak(from, gl_LocalInvocationIndex);
    shift = peak.largest;
    less = policy_less(peak.sum);
  }
  if (key >= args.core.kv_len) return;
  const float score = key_score(from, int(key));
  float weight = 0.0;
  if (score != MASKED_SCORE)
    weight = exp2(policy_weight_exponent(score, shift, less)) * policy_keep(from.policy, int(key));
  weights[args.w_offset + batch * args.w_stride_batch + head * args.w_stride_head +
          row * args.w_stride_row + key] = store_scalar(weight);
}
