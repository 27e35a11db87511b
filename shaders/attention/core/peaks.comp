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
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/tile/backward.def"
BUFFER_ARGS(AttentionBackwardCall, 10);
#define SCRATCH_BINDING 3
#include "attention/core/policy.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 2) readonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) writeonly buffer Peaks { ivec4 peaks[]; };
#include "attention/core/row_peak.glsl"

void main() {
  const uint item = gl_LocalInvocationIndex, row = gl_WorkGroupID.x;
  const uint head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
  const float lse = log_sum_exp[args.core.lse_offset + batch * args.core.lse_stride_batch +
                                head * args.core.lse_stride_head + row];
  const bool normalize = (args.policy.features & POLICY_UNNORMALIZED) == 0u;

  const PeakRow peak_row = PeakRow(
      policy_row(batch, head, row), head, HEAD_DIM,
      args.core.q_offset + batch * args.core.q_stride_batch + head * args.core.q_stride_head +
          row * args.core.q_stride_row,
      args.core.k_offset + batch * args.core.k_stride_batch +
          head / args.core.group * args.core.k_stride_head);
  const bool counts = sees_key(peak_row, item) && !is_infinite(lse);

  float shift = policy_exponent(lse), less = 0.0;
  int key = -1;
  if (!normalize || is_coarse(lse)) {
    const RowPeak peak = find_peak(peak_row, item);
    shift = peak.largest;
    less = normalize ? policy_less(peak.sum) : LEAST_LESS;
    key = normalize ? -1 : peak.key;
  }
  if (item == 0u)
    peaks[args.gradient.peaks + (batch * args.core.heads + head) * args.core.q_len + row] =
        ivec4(floatBitsToInt(shift), key, floatBitsToInt(less), counts ? 1 : 0);
}
