// SPDX-License-Identifier: Apache-2.0
// What     For every row {largest base-2 score, which key's, 0, 0}, to the scratch buffer: the
//          gradient of outputs that aren't divided by their weights' sum runs through that score
//          too. Sink n counts as key kv_len + n; the first of equals wins; a row that sees nothing
//          has key -1.
// Who      Group (x, y, z): row, head, batch.
// Memory   One row of q and all visible rows of k: an option that is rarely asked for.
// Numerics Float, features in order.
// Assumes  The table of rows is written.
#include "attention/core/policy.clh"
#include "operations/attention_core/backward_args.h"

KERNEL void attention_peaks(const global scalar* restrict q, const global scalar* restrict k,
                            global int4* scratch, POLICY_KERNEL_PARAMETERS,
                            const struct AttentionBackwardCall call) {
  local float scores[WG_X];
  local int keys[WG_X];
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
  const uint item = get_local_id(0), row = get_group_id(0);
  const size_t head = get_group_id(1), batch = get_group_id(2);
  q += a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head + (size_t)row * a.q_stride_row;
  k += a.k_offset + batch * a.k_stride_batch + head / a.group * a.k_stride_head;

  const RowPolicy at = policy_row(policies, batch, head, row);
  float largest = 0.0f;
  int peak = -1;
  for (int key = at.first + (int)item; key < at.end; key += WG_X) {
    if (!policy_sees(policies, at, key)) continue;
    float dot_product = 0.0f;
    for (uint d = 0; d < HEAD_DIM; ++d)
      dot_product =
          fma(load_scalar(q, d), load_scalar(k, (size_t)key * a.k_stride_row + d), dot_product);
    const float score = policy_score(policies, at, key, dot_product * a.scale).s0;
    if (peak < 0 || score > largest) largest = score, peak = key;
  }
  if ((call.policy.features & POLICY_SINKS) != 0) {
    const u32 first =
        call.policy.sinks_offset + head / call.policy.sinks_group * call.policy.sinks_stride_head;
    for (uint n = item; n < call.policy.sinks; n += WG_X) {
      const float score = SINK_VALUE(first + n * call.policy.sinks_stride,
                                     call.policy.features & POLICY_WIDE_SINKS) *
                          LOG2_E;
      if (peak < 0 || score > largest) largest = score, peak = (int)(a.kv_len + n);
    }
  }
  scores[item] = largest;
  keys[item] = peak;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item != 0) return;
  for (uint i = 1; i < WG_X; ++i) {
    if (keys[i] < 0) continue;
    if (peak < 0 || scores[i] > largest || (scores[i] == largest && keys[i] < peak))
      largest = scores[i], peak = keys[i];
  }
  scratch[call.gradient.peaks + (batch * a.heads + head) * a.q_len + row] =
      (int4)(as_int(largest), peak, 0, 0);
}
