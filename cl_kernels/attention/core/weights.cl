// SPDX-License-Identifier: Apache-2.0
// What     weights[i,j] = keep[i,j] exp(score[i,j] - lse[i]), 0 where i does not see j; where lse is
//          too coarse, from the row's largest score and sum.
// Who      Item (x, y, z): key x, ATTN_WEIGHTS_ROWS rows from y on, batch and head z.
// Memory   One row of k for so many weights; queries by way of local memory.
// Numerics Float, features in order; base-2 exponentials; one rounding to DTYPE.
// Assumes  The table of rows is written, and log_sum_exp by the pass before.
#include "attention/core/row_peak.clh"
#include "operations/attention_core/core/weights_args.h"

// The first row from r on whose weights are not made from its log_sum_exp.
INLINE uint coarse_row(const Policies* policies, const global float* log_sum_exp, uint r, uint rows) {
  while (r < rows && !is_coarse(policies, log_sum_exp[r])) ++r;
  return r;
}

KERNEL void attention_weights(const global scalar* restrict q, const global scalar* restrict k,
                              const global float* restrict log_sum_exp, global scalar* restrict weights,
                              const global float* scratch, POLICY_KERNEL_PARAMETERS,
                              const struct AttentionWeightsCall call) {
  local float scores[WG_X];
  local int keys[WG_X];
  local float4 queries[ATTN_WEIGHTS_FEATURES * ATTN_WEIGHTS_FOURS];
  local float products[ATTN_WEIGHTS_ROWS * WG_X];
  local float shifts[ATTN_WEIGHTS_ROWS], lesses[ATTN_WEIGHTS_ROWS];
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
  const uint item = get_local_id(0), key = get_global_id(0), first_row = get_group_id(1) * ATTN_WEIGHTS_ROWS;
  const uint rows = min((uint)ATTN_WEIGHTS_ROWS, a.q_len - first_row);
  const size_t batch = get_global_id(2) / a.heads, head = get_global_id(2) % a.heads;
  const global scalar* query =
      q + a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head + (size_t)first_row * a.q_stride_row;
  const global scalar* keys_of_head = k + a.k_offset + batch * a.k_stride_batch + head / a.group * a.k_stride_head;
  const global scalar* of_key = keys_of_head + (size_t)min(key, a.kv_len - 1) * a.k_stride_row;

  // The keys that one of the rows may see.
  int begin = (int)a.kv_len, end = 0;
  for (uint r = 0; r < rows; ++r) {
    const RowPolicy policy = policy_row(policies, batch, head, first_row + r);
    begin = min(begin, policy.first);
    end = max(end, policy.end);
  }
  const int first_key = (int)(get_group_id(0) * WG_X);
  const uint head_dim = first_key < end && first_key + (int)WG_X > begin ? call.head_dim : 0;

  float4 sums[ATTN_WEIGHTS_FOURS];
  UNROLL for (uint r = 0; r < ATTN_WEIGHTS_FOURS; ++r) sums[r] = (float4)(0.0f);
  for (uint from = 0; UNIFORM(from < head_dim); from += ATTN_WEIGHTS_FEATURES) {
    const uint features = min((uint)ATTN_WEIGHTS_FEATURES, head_dim - from);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < ATTN_WEIGHTS_FEATURES * ATTN_WEIGHTS_FOURS; i += WG_X) {
      const uint feature = i % ATTN_WEIGHTS_FEATURES, row = i / ATTN_WEIGHTS_FEATURES * 4;
      float4 x = (float4)(0.0f);
      if (feature < features) {
        const size_t at = from + feature + (size_t)row * a.q_stride_row;
        if (row < rows) x.s0 = load_scalar(query, at);
        if (row + 1 < rows) x.s1 = load_scalar(query, at + a.q_stride_row);
        if (row + 2 < rows) x.s2 = load_scalar(query, at + 2 * (size_t)a.q_stride_row);
        if (row + 3 < rows) x.s3 = load_scalar(query, at + 3 * (size_t)a.q_stride_row);
      }
      queries[feature * ATTN_WEIGHTS_FOURS + row / 4] = x;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint f = 0; f < features; ++f) {
      const float of = load_scalar(of_key, from + f);
      UNROLL for (uint r = 0; r < ATTN_WEIGHTS_FOURS; ++r)
        sums[r] = fma((float4)(of), queries[f * ATTN_WEIGHTS_FOURS + r], sums[r]);
    }
  }
  UNROLL for (uint r = 0; r < ATTN_WEIGHTS_FOURS; ++r) {
    products[(4 * r) * WG_X + item] = sums[r].s0;
    products[(4 * r + 1) * WG_X + item] = sums[r].s1;
    products[(4 * r + 2) * WG_X + item] = sums[r].s2;
    products[(4 * r + 3) * WG_X + item] = sums[r].s3;
  }

  // Rows whose largest scores all items look for.
  const global float* of_rows =
      log_sum_exp + a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head + first_row;
  uint next = coarse_row(policies, of_rows, 0, rows);
  for (uint r = next; UNIFORM(r < rows); r = next) {
    const PeakRow of_row = {policies, policy_row(policies, batch, head, first_row + r), (uint)head, call.head_dim,
                            query + (size_t)r * a.q_stride_row, keys_of_head};
    const RowPeak peak = find_peak(&of_row, scores, keys, item);
    if (item == 0) {
      shifts[r] = peak.largest;
      lesses[r] = policy_less(peak.sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    next = coarse_row(policies, of_rows, r + 1, rows);
  }

  for (uint r = 0; r < rows && key < a.kv_len; ++r) {
    const RowPolicy policy = policy_row(policies, batch, head, first_row + r);
    const bool coarse = is_coarse(policies, of_rows[r]);
    const float shift = coarse ? shifts[r] : policy_exponent(policies, of_rows[r]), less = coarse ? lesses[r] : 0.0f;
    float weight = 0.0f;
    if (policy_sees(policies, policy, (int)key)) {
      const float score = policy_score(policies, policy, (int)key, products[r * WG_X + item] * CORE(scale)).s0;
      if (score != MASKED_SCORE)
        weight = exp2(policy_weight_exponent(score, shift, less)) * policy_keep(policies, policy, (int)key);
    }
    const size_t line = (size_t)(first_row + r) * call.w_stride_row;
    const size_t to = batch * call.w_stride_batch + head * call.w_stride_head + line;
    store_scalar(weight, weights + call.w_offset, to + key);
  }
}
