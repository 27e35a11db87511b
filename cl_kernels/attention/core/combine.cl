// SPDX-License-Identifier: Apache-2.0
// What     Merges the partial results of split keys into output and lse.
// Who      Item (x, y, z): COMBINE_FEATURES features of row x / COMBINE_PARTS of head y, batch z.
// Memory   The partial results, output and lse once.
// Numerics Float, splits in order; one rounding to DTYPE.
// Assumes  A grid of exactly heads x batch in y and z; operations/attention_core/core/combine.h says where the partial results lie.
#include "lib/prelude.clh"
#if POLICY
#include "attention/core/policy.clh"
#else
#include "operations/attention_core/core/policy_args.h"
#include "operations/attention_core/core/score.h"
#define CALL_PARAMETERS const struct AttentionCall call
#endif
#include "operations/attention_core/core/combine.h"

#define SPLITS_AT_ONCE 8
KERNEL void attention_combine(global scalar* restrict output, global float* restrict log_sum_exp,
                              const global float* restrict scratch, CALL_PARAMETERS) {
  const struct AttentionArgs a = call.core;
  const uint row = get_global_id(0) / COMBINE_PARTS, head = get_global_id(1), batch = get_global_id(2);
  const uint column = get_global_id(0) % COMBINE_PARTS * COMBINE_FEATURES;
  if (row >= a.q_len) return;
  const size_t lines = get_global_size(2) * a.heads * a.q_len, line = ((size_t)batch * a.heads + head) * a.q_len + row;
  const global float* sums = scratch + a.partials + line * VALUE_DIM;
  const global float2* statistics = (const global float2*)(scratch + a.partials + a.splits * lines * VALUE_DIM) + line;

  // SPLITS_AT_ONCE loads are under way together; splits past the last one repeat it and do not count.
  float before = LOWEST_MAXIMUM, total = 0.0f, sum[COMBINE_FEATURES];
  UNROLL for (uint d = 0; d < COMBINE_FEATURES; ++d) sum[d] = 0.0f;
  for (uint first = 0; first < a.splits; first += SPLITS_AT_ONCE) {
    float2 part[SPLITS_AT_ONCE];
    UNROLL for (uint n = 0; n < SPLITS_AT_ONCE; ++n) part[n] = statistics[min(first + n, a.splits - 1) * lines];
    UNROLL for (uint n = 0; n < SPLITS_AT_ONCE; ++n) before = part[n].s1 != 0.0f ? max(before, part[n].s0) : before;
  }
  for (uint first = 0; first < a.splits; first += SPLITS_AT_ONCE) {
    float2 part[SPLITS_AT_ONCE];
    float values[SPLITS_AT_ONCE][COMBINE_FEATURES];
    UNROLL for (uint n = 0; n < SPLITS_AT_ONCE; ++n) {
      const size_t at = min(first + n, a.splits - 1) * lines;
      part[n] = statistics[at];
      UNROLL for (uint d = 0; d < COMBINE_FEATURES; ++d)
        values[n][d] = sums[at * VALUE_DIM + min(column + d, (uint)VALUE_DIM - 1)];
    }
    UNROLL for (uint n = 0; n < SPLITS_AT_ONCE; ++n) {
      const bool counts = first + n < a.splits && part[n].s1 != 0.0f;
      const float factor = counts ? exp2(part[n].s0 - before) : 0.0f;
      total += counts ? part[n].s1 * factor : 0.0f;
      UNROLL for (uint d = 0; d < COMBINE_FEATURES; ++d) sum[d] += counts ? values[n][d] * factor : 0.0f;
    }
  }

  float2 end = (float2)(before, total);
#if POLICY
  const Policies operands = MAKE_POLICIES(call, scratch);
  end = policy_sinks(&operands, head, end.s0, end.s1);
#endif
  const u32 features = call.policy.features;
  const float2 result = row_result(before, end.s0, end.s1, (features & POLICY_UNNORMALIZED) == 0,
                                   (features & POLICY_FAR) != 0, -INFINITY);
  output += a.o_offset + (size_t)batch * a.o_stride_batch + (size_t)head * a.o_stride_head + (size_t)row * a.o_stride_row;
  // Unrolled, so that sums stay in registers.
  UNROLL for (uint d = 0; d < COMBINE_FEATURES; ++d) {
    if (column + d < VALUE_DIM) store_scalar(sum[d] * result.s0, output, column + d);
  }
  if (a.write_lse && column == 0)
    log_sum_exp[a.lse_offset + (size_t)batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head + row] = result.s1;
}
