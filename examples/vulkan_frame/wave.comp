// SPDX-License-Identifier: Apache-2.0
// target[i] = source[i] * factor + shift * i: what a renderer does before and after.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; float factor, shift; };
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Target { float target[]; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) target[i] = source[i] * factor + shift * float(i % 64);
}
