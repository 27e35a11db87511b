// SPDX-License-Identifier: Apache-2.0
// What     Merges the partial results of split keys into output and lse.
// Who      Item (x, y, z): COMBINE_FEATURES features of row x / COMBINE_PARTS of head y, batch z.
// Memory   The partial results, output and lse once.
// Numerics Float, splits in order; one rounding to DTYPE.
// Assumes  A grid of exactly heads x batch in y and z; operations/attention/combine.h says where the partial results lie.
#include "lib/prelude.clh"
#if POLICY
#include "attention/policy.clh"
#else
#include "operations/attention/policy_args.h"
#include "operations/attention/score.h"
#endif
#include "operations/attention/combine.h"

#if POLICY
#define CALL_PARAMETERS POLICY_KERNEL_PARAMETERS, const struct AttentionCall call
#else
#define CALL_PARAMETERS const struct AttentionCall call
#endif
KERNEL void attention_combine(global scalar* restrict output, global float* restrict log_sum_exp,
                              const global float* restrict scratch, CALL_PARAMETERS) {
  const struct AttentionArgs a = call.core;
  const uint row = get_global_id(0) / COMBINE_PARTS, head = get_global_id(1), batch = get_global_id(2);
  const uint column = get_global_id(0) % COMBINE_PARTS * COMBINE_FEATURES;
  if (row >= a.q_len) return;
  const size_t lines = get_global_size(2) * a.heads * a.q_len, line = ((size_t)batch * a.heads + head) * a.q_len + row;
  const global float* sums = scratch + a.partials + line * VALUE_DIM;
  const global float2* statistics = (const global float2*)(scratch + a.partials + a.splits * lines * VALUE_DIM) + line;

  float before = LOWEST_MAXIMUM, total = 0.0f, sum[COMBINE_FEATURES];
  for (uint d = 0; d < COMBINE_FEATURES; ++d) sum[d] = 0.0f;
  for (uint split = 0; split < a.splits; ++split) {
    const float2 part = statistics[split * lines];
    if (part.s1 != 0.0f) before = max(before, part.s0);
  }
  for (uint split = 0; split < a.splits; ++split) {
    const float2 part = statistics[split * lines];
    if (part.s1 == 0.0f) continue;
    const float factor = exp2(part.s0 - before);
    total = fma(part.s1, factor, total);
    const global float* from = sums + split * lines * VALUE_DIM;
    for (uint d = 0; d < COMBINE_FEATURES; ++d)
      sum[d] = fma(from[min(column + d, (uint)VALUE_DIM - 1)], factor, sum[d]);
  }

  float2 end = (float2)(before, total);
#if POLICY
  const Policies operands = MAKE_POLICIES(call, scratch);
  end = policy_sinks(&operands, head, end.s0, end.s1);
#endif
  const float2 result =
      row_result(before, end.s0, end.s1, (call.policy.features & POLICY_UNNORMALIZED) == 0, -INFINITY);
  output += a.o_offset + (size_t)batch * a.o_stride_batch + (size_t)head * a.o_stride_head + (size_t)row * a.o_stride_row;
  for (uint d = 0; d < COMBINE_FEATURES && column + d < VALUE_DIM; ++d)
    store_scalar(sum[d] * result.s0, output, column + d);
  if (a.write_lse && column == 0)
    log_sum_exp[a.lse_offset + (size_t)batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head + row] = result.s1;
}
