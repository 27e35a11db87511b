// SPDX-License-Identifier: Apache-2.0
// Item i copies 1 + i mod 4 elements of a type that is a value, `step` apart, by lib/typed.glsl, and says what it read.
#version 450
#extension GL_GOOGLE_include_directive : require
#define STORAGE16 1
#include "lib/typed.glsl"

TYPED_INPUT(source, 0)
TYPED_OUTPUT(target, 1)
layout(std430, binding = 2) writeonly buffer Read { vec4 taken[]; };
layout(push_constant) uniform Push { uint type, step, items; };

void main() {
  const uint item = gl_GlobalInvocationID.x;
  if (item >= items) return;
  const uint at = item * (4u * step + 1u), count = 1u + item % 4u;
  const vec4 x = load_source_steps(at, step, count, type);
  taken[item] = x;
  store_target_steps(x, at, step, count, type);
}
