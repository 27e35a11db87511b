// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/position_bias.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/typed.glsl"
#include "operations/attention_core/core/position_bias_args.h"

TYPED_INPUT(biases, 0)
layout(std430, binding = 1) writeonly buffer Scratch { float scratch[]; };
PUSH_ARGS(AttentionPositionBiasArgs);

void main() {
  const uint key = gl_GlobalInvocationID.x, head = gl_WorkGroupID.y;
  if (key >= args.keys) return;
  float bias = 0.0;
  if (key < args.biases) {
    bias = load_biases_steps(args.offset + head * args.stride_head + key * args.stride, 1u, 1u, args.type).x;
  }
  scratch[args.to + head * args.keys + key] = bias;
}
