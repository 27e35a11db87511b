// SPDX-License-Identifier: Apache-2.0
// What     weights[i,j] = keep[i,j] exp(score[i,j] - lse[i]), 0 where i does not see j; where lse is
//          too coarse, from the row's largest score and sum.
// Who      Item (x, y, z): key x, row y, batch and head z.
// Memory   One row of q and one of k per weight: this is the operation that spells the matrix out.
// Numerics Float, features in order; base-2 exponentials; one rounding to DTYPE.
// Assumes  The table of rows is written, and log_sum_exp by the pass before.
#include "attention/core/row_peak.clh"
#include "operations/attention_core/core/weights_args.h"

KERNEL void attention_weights(const global scalar* restrict q, const global scalar* restrict k,
                              const global float* restrict log_sum_exp, global scalar* restrict weights,
                              const global float* scratch, POLICY_KERNEL_PARAMETERS,
                              const struct AttentionWeightsCall call) {
  local float scores[WG_X];
  local int keys[WG_X];
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
  const uint key = get_global_id(0), row = get_global_id(1);
  const size_t batch = get_global_id(2) / a.heads, head = get_global_id(2) % a.heads;
  const PeakRow from = {
      policies, policy_row(policies, batch, head, row), (uint)head, call.head_dim,
      q + a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head + (size_t)row * a.q_stride_row,
      k + a.k_offset + batch * a.k_stride_batch + head / a.group * a.k_stride_head};
  const float lse = log_sum_exp[a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head + row];
  float shift = policy_exponent(policies, lse), less = 0.0f;
  if (is_coarse(policies, lse)) {  // of all items' row
    const RowPeak peak = find_peak(&from, scores, keys, get_local_id(0));
    shift = peak.largest;
    less = policy_less(peak.sum);
  }
  if (key >= a.kv_len) return;
  const float score = key_score(&from, (int)key);
  const float weight =
      score == MASKED_SCORE ? 0.0f : exp2(policy_weight_exponent(score, shift, less)) * policy_keep(policies, from.policy, (int)key);
  store_scalar(weight, weights + call.w_offset,
               batch * call.w_stride_batch + head * call.w_stride_head + (size_t)row * call.w_stride_row + key);
}
