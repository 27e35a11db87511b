// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/scales.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/core/codes.glsl"

layout(std430, binding = 0) readonly buffer Peaks { float peaks[]; };
layout(std430, binding = 1) writeonly buffer Scales { float scales[]; };
PUSH_ARGS(CacheScalesArgs);

#define PEAK(row) peaks[row]
#define SCALE(i) scales[i]

shared float space[WG_X];
float LARGEST(float x) {
  const uint item = gl_LocalInvocationID.x;
  space[item] = x;
  for (uint width = WG_X / 2u; width > 0u; width /= 2u) {
    barrier();
    if (item < width) space[item] = max(space[item], space[item + width]);
  }
  barrier();
  return space[0];
}

void main() {
#include "operations/kv_cache/rows/scales.h"
}
