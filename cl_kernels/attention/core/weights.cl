// SPDX-License-Identifier: Apache-2.0
// What     weights[i,j] = keep[i,j] exp(score[i,j] - lse[i]), 0 where i does not see j.
// Who      Item (x, y, z): key x, row y, batch and head z.
// Memory   One row of q and one of k per weight: this is the operation that spells the matrix out.
// Numerics Float, features in order; base-2 exponentials; one rounding to DTYPE.
// Assumes  The table of rows is written, and log_sum_exp by the pass before.
#include "attention/core/policy.clh"
#include "operations/attention_core/weights_args.h"

KERNEL void attention_weights(const global scalar* restrict q, const global scalar* restrict k,
                              const global float* restrict log_sum_exp, global scalar* restrict weights,
                              const global float* scratch, POLICY_KERNEL_PARAMETERS,
                              const struct AttentionWeightsCall call) {
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
  const uint key = get_global_id(0), row = get_global_id(1);
  const size_t batch = get_global_id(2) / a.heads, head = get_global_id(2) % a.heads;
  if (key >= a.kv_len) return;
  const RowPolicy at = policy_row(policies, batch, head, row);
  float weight = 0.0f;
  if (policy_sees(policies, at, (int)key)) {
    q += a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head + (size_t)row * a.q_stride_row;
    k += a.k_offset + batch * a.k_stride_batch + head / a.group * a.k_stride_head + (size_t)key * a.k_stride_row;
    float dot_product = 0.0f;
    for (uint d = 0; d < call.head_dim; ++d) dot_product = fma(load_scalar(q, d), load_scalar(k, d), dot_product);
    const float score = policy_score(policies, at, (int)key, dot_product * a.scale).s0;
    const float lse = log_sum_exp[a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head + row];
    weight = exp2(score - lse * LOG2_E) * policy_keep(policies, at, (int)key);
  }
  store_scalar(weight, weights + call.w_offset,
               batch * call.w_stride_batch + head * call.w_stride_head + (size_t)row * call.w_stride_row + key);
}
