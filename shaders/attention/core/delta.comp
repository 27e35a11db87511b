// SPDX-License-Identifier: Apache-2.0
// What     delta[b,h,i] = sum_d do[i,d] o[i,d], to the scratch buffer.
// Who      Group (x, y, z): WG_X / DELTA_LANES rows, head, batch; DELTA_LANES items per row.
// Memory   o and do once.
// Numerics Float; a lane takes every DELTA_LANES-th vector of features, lanes in order.
// Assumes  DELTA_LANES divides WG_X; lengths below 2^30; ALIGNED is no lie; operands below 2^32
//          elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/core/delta.h"
#include "operations/attention_core/tile/backward.def"

layout(std430, binding = 0) readonly buffer Output { scalar o[]; };
layout(std430, binding = 0) readonly buffer OutputVectors { scalar4 o4[]; };
layout(std430, binding = 1) readonly buffer OutputGradient { scalar g[]; };
layout(std430, binding = 1) readonly buffer OutputGradientVectors { scalar4 g4[]; };
layout(std430, binding = 2) writeonly buffer Scratch { float scratch[]; };
BUFFER_ARGS(AttentionBackwardCall, 3);

shared float partial[WG_X];

void main() {
  const uint item = gl_LocalInvocationIndex, lane = item % DELTA_LANES;
  const uint row = gl_WorkGroupID.x * (WG_X / DELTA_LANES) + item / DELTA_LANES;
  const uint head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
  const uint o_at = args.core.o_offset + batch * args.core.o_stride_batch +
                    head * args.core.o_stride_head + row * args.core.o_stride_row;
  const uint g_at = args.gradient.do_offset + batch * args.gradient.do_stride_batch +
                    head * args.gradient.do_stride_head + row * args.gradient.do_stride_row;

  float sum = 0.0;
  if (row < args.core.q_len) {
    for (uint d = lane * 4u; d < VALUE_DIM; d += 4u * DELTA_LANES) {
      if (ALIGNED != 0u) {
        const vec4 x = load_scalar4(o4[(o_at + d) / 4u]), y = load_scalar4(g4[(g_at + d) / 4u]);
        [[unroll]] for (uint i = 0u; i < 4u; ++i) sum = fma(x[i], y[i], sum);
      } else {
        for (uint i = d; i < min(d + 4u, VALUE_DIM); ++i)
          sum = fma(load_scalar(o[o_at + i]), load_scalar(g[g_at + i]), sum);
      }
    }
  }
  partial[item] = sum;
  barrier();
  if (lane != 0u || row >= args.core.q_len) return;
  for (uint i = 1u; i < DELTA_LANES; ++i) sum += partial[item + i];
  scratch[args.gradient.delta + (batch * args.core.heads + head) * args.core.q_len + row] = sum;
}
