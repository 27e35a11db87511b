// SPDX-License-Identifier: Apache-2.0
// What     x = x * slope + offset, over and over: the rate of float multiply-adds that can be had.
// Who      An item owns 8 independent chains of vec4 in registers.
// Memory   4 bytes written per item. FLOPs of a launch: items * iterations * 1024.
// Numerics slope is a little above -1: x swings around offset / 2, bounded and never subnormal.
// Assumes  sink holds one float per item; a one-dimensional grid.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/probe/args.h"

layout(std430, binding = 0) writeonly buffer Sink { float sink[]; };
PUSH_ARGS(FmaPeakArgs);

const uint kChains = 8u, kRounds = 16u;

void main() {
  const uint item = gl_GlobalInvocationID.x;
  // From the id, so that no compiler knows them.
  const vec4 slope = vec4(-1.0 + 1e-6 * float(item % 7u + 1u));
  const vec4 offset = vec4(0.1 * float(item % 5u + 1u));
  vec4 x[kChains];
  [[unroll]] for (uint c = 0u; c < kChains; ++c)
    x[c] = vec4(0.1, 0.2, 0.3, 0.4) * float(c + item % 3u + 1u);
  for (uint i = 0u; i < args.iterations; ++i) {
    [[unroll]] for (uint round = 0u; round < kRounds; ++round) {
      [[unroll]] for (uint c = 0u; c < kChains; ++c) x[c] = fma(x[c], slope, offset);
    }
  }
  vec4 total = x[0];
  [[unroll]] for (uint c = 1u; c < kChains; ++c) total += x[c];
  sink[item] = (total.x + total.y) + (total.z + total.w);
}
