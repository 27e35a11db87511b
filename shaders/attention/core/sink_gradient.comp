// SPDX-License-Identifier: Apache-2.0
// What     dsink[h,n] = -sum p[i] delta[i], i over the rows of all batches and heads that share the
//          sink and see a key. p[i] = exp(sink[h,n] - lse[i]); where weights aren't divided by their
//          sum, 1 for rows whose largest score this sink is, else 0.
// Who      Group (x, y): sink n, head h of the sinks.
// Memory   The table of peaks and delta once per sink.
// Numerics Float; an item takes every WG_X-th row in order, in runs; items in order; one rounding.
// Assumes  batch * group * q_len below 2^32 - WG_X.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/bias_gradient_args.h"
#include "operations/attention_core/core/score.h"

layout(std430, binding = 0) readonly buffer Sinks { scalar sinks[]; };
layout(std430, binding = 0) readonly buffer WideSinks { float wide_sinks[]; };
layout(std430, binding = 1) readonly buffer Scratch { float scratch[]; };
layout(std430, binding = 1) readonly buffer ScratchEntries { ivec4 scratch_entries[]; };
layout(std430, binding = 2) writeonly buffer SinkGradient { scalar sink_gradient[]; };
layout(std430, binding = 2) writeonly buffer WideSinkGradient { float wide_sink_gradient[]; };
PUSH_ARGS(AttentionSinkGradientArgs);

shared float partial[WG_X];

void main() {
  const uint item = gl_LocalInvocationIndex, rows = args.batch * args.group * args.q_len;
  const uint n = gl_WorkGroupID.x, sink_head = gl_WorkGroupID.y;
  const uint from = args.sinks_offset + sink_head * args.sinks_stride_head + n * args.sinks_stride;
  float sink;
  if (args.wide != 0u) {
    sink = wide_sinks[from];
  } else {
    sink = load_scalar(sinks[from]);
  }

  float sum = 0.0;
  for (uint row = item; row < rows;) {
    float run = 0.0;
    for (uint i = 0u; i < REDUCTION_RUN && row < rows; ++i, row += WG_X) {
      const uint index = row % args.q_len, line = row / args.q_len;
      const uint head = sink_head * args.group + line % args.group, batch = line / args.group;
      const uint at = (batch * args.heads + head) * args.q_len + index;
      const ivec4 peak = scratch_entries[args.peaks + at];
      if (peak.w == 0) continue;  // its output is 0, whatever is in memory
      float p = exp2(exponent_of_score(sink) - intBitsToFloat(peak.x) - intBitsToFloat(peak.z));
      if (args.normalize == 0u) p = peak.y == int(args.kv_len + n) ? 1.0 : 0.0;
      run += p * scratch[args.delta + at];
    }
    sum += run;
  }
  partial[item] = sum;
  barrier();
  if (item != 0u) return;
  for (uint i = 1u; i < WG_X; ++i) sum += partial[i];
  const uint to = args.offset + sink_head * args.stride_head + n * args.stride;
  if (args.wide != 0u) {
    wide_sink_gradient[to] = -sum;
  } else {
    sink_gradient[to] = store_scalar(-sum);
  }
}
