// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/scale_pairs.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/scaled_args.h"

layout(std430, binding = 0) writeonly buffer To { float to[]; };
PUSH_ARGS(AttentionScalePairsArgs);

void main() {
  const uint n = gl_GlobalInvocationID.x;
  if (n < args.count) to[args.offset + n] = n % 2u == 0u ? args.key : args.value;
}
