// SPDX-License-Identifier: Apache-2.0
// What     For every row {largest base-2 score, which key's, 0, 0}, to the scratch buffer: the
//          gradient of outputs that aren't divided by their weights' sum runs through that score
//          too. Sink n counts as key kv_len + n; the first of equals wins; a row that sees nothing
//          has key -1.
// Who      Group (x, y, z): row, head, batch.
// Memory   One row of q and all visible rows of k: an option that is rarely asked for.
// Numerics Float, features in order.
// Assumes  The table of rows is written.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/backward_args.h"
#include "operations/attention_core/tile/backward.def"
BUFFER_ARGS(AttentionBackwardCall, 9);
#define SCRATCH_BINDING 2
#include "attention/core/policy.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = SCRATCH_BINDING) writeonly buffer Peaks { ivec4 peaks[]; };

shared float scores[WG_X];
shared int keys[WG_X];

void main() {
  const uint item = gl_LocalInvocationIndex, row = gl_WorkGroupID.x;
  const uint head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
  const uint q_at = args.core.q_offset + batch * args.core.q_stride_batch +
                    head * args.core.q_stride_head + row * args.core.q_stride_row;
  const uint k_base = args.core.k_offset + batch * args.core.k_stride_batch +
                      head / args.core.group * args.core.k_stride_head;

  const RowPolicy at = policy_row(batch, head, row);
  float largest = 0.0;
  int peak = -1;
  for (int key = at.first + int(item); key < at.end; key += int(WG_X)) {
    if (!policy_sees(at, key)) continue;
    const uint k_at = k_base + uint(key) * args.core.k_stride_row;
    float dot_product = 0.0;
    for (uint d = 0u; d < HEAD_DIM; ++d)
      dot_product = fma(load_scalar(q[q_at + d]), load_scalar(k[k_at + d]), dot_product);
    const float score = policy_score(at, key, dot_product * args.core.scale).x;
    if (peak < 0 || score > largest) {
      largest = score;
      peak = key;
    }
  }
  if ((args.policy.features & POLICY_SINKS) != 0u) {
    const uint first =
        args.policy.sinks_offset + head / args.policy.sinks_group * args.policy.sinks_stride_head;
    for (uint n = item; n < args.policy.sinks; n += WG_X) {
      const float score = SINK_VALUE(first + n * args.policy.sinks_stride,
                                     args.policy.features & POLICY_WIDE_SINKS) *
                          LOG2_E;
      if (peak < 0 || score > largest) {
        largest = score;
        peak = int(args.core.kv_len + n);
      }
    }
  }
  scores[item] = largest;
  keys[item] = peak;
  barrier();
  if (item != 0u) return;
  for (uint i = 1u; i < WG_X; ++i) {
    if (keys[i] < 0) continue;
    if (peak < 0 || scores[i] > largest || (scores[i] == largest && keys[i] < peak)) {
      largest = scores[i];
      peak = keys[i];
    }
  }
  peaks[args.gradient.peaks + (batch * args.core.heads + head) * args.core.q_len + row] =
      ivec4(floatBitsToInt(largest), peak, 0, 0);
}
