#version 450
// SPDX-License-Identifier: Apache-2.0
// The same as rms_norm.cl. WG_X is specialization constant 0, as everywhere in Tessera.
layout(local_size_x_id = 0) in;

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer W { float w[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Args {
  uint features, x_offset, w_offset, y_offset;
  float epsilon;
} args;

shared float sums[gl_WorkGroupSize.x];

void main() {
  const uint item = gl_LocalInvocationID.x;
  const uint x_row = args.x_offset + gl_WorkGroupID.x * args.features;
  const uint y_row = args.y_offset + gl_WorkGroupID.x * args.features;

  float sum = 0.0;
  for (uint i = item; i < args.features; i += gl_WorkGroupSize.x) sum = fma(x[x_row + i], x[x_row + i], sum);
  sums[item] = sum;
  for (uint half_size = gl_WorkGroupSize.x / 2; half_size > 0; half_size /= 2) {
    barrier();
    if (item < half_size) sums[item] += sums[item + half_size];
  }
  barrier();
  const float scale = 1.0 / sqrt(sums[0] / args.features + args.epsilon);
  for (uint i = item; i < args.features; i += gl_WorkGroupSize.x) {
    y[y_row + i] = x[x_row + i] * scale * w[args.w_offset + i];
  }
}
