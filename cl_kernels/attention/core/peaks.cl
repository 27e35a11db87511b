// SPDX-License-Identifier: Apache-2.0
// What     For every row {shift, key, less, counts}, to the scratch buffer: its weights are
//          exp2(score - shift - less). Shift is log_sum_exp in base 2 and less 0, or where that is
//          too coarse, the largest score and the logarithm of the sum, or LEAST_LESS. Outputs that
//          aren't divided by their weights' sum have the largest score and LEAST_LESS; their
//          gradient runs through that score, too: key says whose it is. Sink n counts as key kv_len + n; the first of equals
//          wins; -1 where it doesn't matter or the row sees nothing. Counts is 1 if the row has a
//          share in the gradients of sinks: it sees a key, and not all of its scores are infinite.
// Who      Group (x, y, z): row, head, batch.
// Memory   log_sum_exp; with sinks, what hides keys up to the first that is seen; of rows that need
//          more one row of q and all visible rows of k, twice: an option that is rarely asked for,
//          or rows whose keys a bias or a slope puts far down.
// Numerics Float, features in order.
// Assumes  The table of rows is written.
#include "attention/core/row_peak.clh"
#include "operations/attention_core/core/backward_args.h"

KERNEL void attention_peaks(const global scalar* restrict q, const global scalar* restrict k,
                            const global float* restrict log_sum_exp, global int4* scratch,
                            POLICY_KERNEL_PARAMETERS, const struct AttentionBackwardCall call) {
  local float scores[WG_X];
  local int keys[WG_X];
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
  const uint item = get_local_id(0), row = get_group_id(0);
  const size_t head = get_group_id(1), batch = get_group_id(2);
  const float lse =
      log_sum_exp[a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head + row];
  const bool normalize = (call.policy.features & POLICY_UNNORMALIZED) == 0;

  const PeakRow peak_row = {
      policies, policy_row(policies, batch, head, row), (uint)head, HEAD_DIM,
      q + a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head + (size_t)row * a.q_stride_row,
      k + a.k_offset + batch * a.k_stride_batch + head / a.group * a.k_stride_head};
  const bool counts = sees_key(&peak_row, keys, item) && !isinf(lse);

  float shift = policy_exponent(policies, lse), less = 0.0f;
  int key = -1;
  if (!normalize || is_coarse(policies, lse)) {
    const RowPeak peak = find_peak(&peak_row, scores, keys, item);
    shift = peak.largest;
    less = normalize ? policy_less(peak.sum) : LEAST_LESS;
    key = normalize ? -1 : peak.key;
  }
  if (item == 0)
    scratch[call.gradient.peaks + (batch * a.heads + head) * a.q_len + row] =
        (int4)(as_int(shift), key, as_int(less), counts);
}
