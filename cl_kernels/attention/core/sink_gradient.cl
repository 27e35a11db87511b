// SPDX-License-Identifier: Apache-2.0
// What     dsink[h,n] = -sum p[i] delta[i], i over the rows of all batches and heads that share the
//          sink and see a key. p[i] = exp(sink[h,n] - lse[i]); where weights aren't divided by their
//          sum, 1 for rows whose largest score this sink is, else 0.
// Who      Group (x, y): sink n, head h of the sinks.
// Memory   The table of peaks and delta once per sink.
// Numerics Float; an item takes every WG_X-th row in order, in runs; items in order; one rounding.
// Assumes  batch * group * q_len below 2^32 - WG_X.
#include "lib/prelude.clh"
#include "operations/attention_core/core/bias_gradient_args.h"
#include "operations/attention_core/core/score.h"

KERNEL void attention_sink_gradient(const global void* restrict sinks,
                                    const global float* restrict scratch,
                                    global void* restrict sink_gradient,
                                    const struct AttentionSinkGradientArgs a) {
  local float partial[WG_X];
  const uint item = get_local_id(0), rows = a.batch * a.group * a.q_len;
  const size_t n = get_group_id(0), sink_head = get_group_id(1);
  const size_t from = a.sinks_offset + sink_head * a.sinks_stride_head + n * a.sinks_stride;
  const float sink = a.wide ? ((const global float*)sinks)[from]
                            : load_scalar((const global scalar*)sinks, from);

  float sum = 0.0f;
  for (uint row = item; row < rows;) {
    float run = 0.0f;
    for (uint i = 0; i < REDUCTION_RUN && row < rows; ++i, row += WG_X) {
      const uint index = row % a.q_len, line = row / a.q_len;
      const size_t head = sink_head * a.group + line % a.group, batch = line / a.group;
      const size_t at = (batch * a.heads + head) * a.q_len + index;
      const int4 peak = ((const global int4*)scratch)[a.peaks + at];
      if (peak.s3 == 0) continue;  // its output is 0, whatever is in memory
      float p = exp2(exponent_of_score(sink) - as_float(peak.s0) - as_float(peak.s2));
      if (!a.normalize) p = peak.s1 == (int)(a.kv_len + n) ? 1.0f : 0.0f;
      run += p * scratch[a.delta + at];
    }
    sum += run;
  }
  partial[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item != 0) return;
  for (uint i = 1; i < WG_X; ++i) sum += partial[i];
  const size_t to = a.offset + sink_head * a.stride_head + n * a.stride;
  if (a.wide) {
    ((global float*)sink_gradient)[to] = -sum;
  } else {
    store_scalar(-sum, (global scalar*)sink_gradient, to);
  }
}
