// SPDX-License-Identifier: Apache-2.0
// What     Gradient of a bias: gradients of the bias elements, summed over what was broadcast.
// Who      Item: one of `lanes` that share an element of the output; a group takes blocks of
//          WG_X / lanes elements, gl_NumWorkGroups.x blocks apart.
// Memory   ds once. Neighbours read neighbouring keys: items of one element if keys are summed,
//          else items of neighbouring elements.
// Numerics Float; a lane takes every lanes-th term in order, in runs; lanes in order; one rounding.
// Assumes  lanes divides WG_X; the output has below 2^32 - WG_X elements, ds below 2^32.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/bias_gradient_args.h"

layout(std430, binding = 0) readonly buffer Scratch { float scratch[]; };
layout(std430, binding = 1) writeonly buffer BiasGradient { scalar bias_gradient[]; };
layout(std430, binding = 1) writeonly buffer WideBiasGradient { float wide_bias_gradient[]; };
PUSH_ARGS(AttentionBiasGradientArgs);

shared float partial[WG_X];

void main() {
  const uint item = gl_LocalInvocationIndex, columns = WG_X / args.lanes;
  const uint lane = args.key_ratio > 1u ? item % args.lanes : item / columns;
  const uint column = args.key_ratio > 1u ? item / args.lanes : item % columns;
  const uint elements = args.out_batch * args.out_heads * args.out_rows * args.out_keys;
  const uint blocks = (elements + columns - 1u) / columns;
  const uint terms = args.batch_ratio * args.head_ratio * args.row_ratio * args.key_ratio;

  for (uint block = gl_WorkGroupID.x; block < blocks; block += gl_NumWorkGroups.x) {
    const uint element = block * columns + column;
    const uint key = element % args.out_keys, row = element / args.out_keys % args.out_rows;
    const uint line = element / args.out_keys / args.out_rows;
    const uint head = line % args.out_heads, batch = line / args.out_heads;
    float sum = 0.0;
    if (element < elements) {
      for (uint term = lane; term < terms;) {
        float run = 0.0;
        for (uint n = 0u; n < REDUCTION_RUN && term < terms; ++n, term += args.lanes) {
          const uint k = key * args.key_ratio + term % args.key_ratio;
          const uint up = term / args.key_ratio;
          const uint i = row * args.row_ratio + up % args.row_ratio;
          const uint further = up / args.row_ratio;
          const uint h = head * args.head_ratio + further % args.head_ratio;
          const uint b = batch * args.batch_ratio + further / args.head_ratio;
          run += scratch[args.ds + ((b * args.heads + h) * args.q_len + i) * args.kv_len + k];
        }
        sum += run;
      }
    }
    partial[lane * columns + column] = sum;
    barrier();
    if (lane == 0u && element < elements) {
      for (uint i = 1u; i < args.lanes; ++i) sum += partial[i * columns + column];
      const uint to = args.offset + batch * args.stride_batch + head * args.stride_head +
                      row * args.stride_row + key * args.stride_key;
      if (args.wide != 0u) {
        wide_bias_gradient[to] = sum;
      } else {
        bias_gradient[to] = store_scalar(sum);
      }
    }
    barrier();
  }
}
