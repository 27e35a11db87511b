// SPDX-License-Identifier: Apache-2.0
// What     delta[b,h,i] = sum_d do[i,d] o[i,d], to the scratch buffer.
// Who      Group (x, y, z): WG_X / DELTA_LANES rows, head, batch; DELTA_LANES items per row.
// Memory   o and do once.
// Numerics Float; a lane takes every DELTA_LANES-th vector of features, lanes in order.
// Assumes  DELTA_LANES divides WG_X; lengths below 2^30; ALIGNED is no lie.
#include "lib/prelude.clh"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/core/delta.h"

KERNEL void attention_delta(const global scalar* restrict output,
                            const global scalar* restrict output_gradient,
                            global float* restrict scratch, const struct AttentionBackwardCall a) {
  local float partial[WG_X];
  const uint item = get_local_id(0), lane = item % DELTA_LANES;
  const uint row = get_group_id(0) * (WG_X / DELTA_LANES) + item / DELTA_LANES;
  const size_t head = get_group_id(1), batch = get_group_id(2);
  output += a.core.o_offset + batch * a.core.o_stride_batch + head * a.core.o_stride_head +
            (size_t)row * a.core.o_stride_row;
  output_gradient += a.gradient.do_offset + batch * a.gradient.do_stride_batch +
                     head * a.gradient.do_stride_head + (size_t)row * a.gradient.do_stride_row;

  float sum = 0.0f;
  if (row < a.core.q_len) {
    for (uint d = lane * 4; d < VALUE_DIM; d += 4 * DELTA_LANES) {
      if (ALIGNED) {
        const float4 o = load_scalar4(output, d), g = load_scalar4(output_gradient, d);
        sum = fma(o.s0, g.s0, sum);
        sum = fma(o.s1, g.s1, sum);
        sum = fma(o.s2, g.s2, sum);
        sum = fma(o.s3, g.s3, sum);
      } else {
        for (uint i = d; i < min(d + 4, (uint)VALUE_DIM); ++i)
          sum = fma(load_scalar(output, i), load_scalar(output_gradient, i), sum);
      }
    }
  }
  partial[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane != 0 || row >= a.core.q_len) return;
  for (uint i = 1; i < DELTA_LANES; ++i) sum += partial[item + i];
  scratch[a.gradient.delta + (batch * a.core.heads + head) * a.core.q_len + row] = sum;
}
