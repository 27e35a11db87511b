// SPDX-License-Identifier: Apache-2.0
// What     to = from, in blocks of 64 bytes: the memory bandwidth that can be had.
// Who      Neighbouring items own neighbouring uvec4 and stride over the grid.
// Memory   A launch reads 64 * blocks bytes and writes as many.
// Numerics None.
// Assumes  Buffers of 64 * blocks bytes that do not overlap; a one-dimensional grid; blocks < 2^29.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/probe/args.h"

layout(std430, binding = 0) readonly buffer From { uvec4 from[]; };
layout(std430, binding = 1) writeonly buffer To { uvec4 to[]; };
PUSH_ARGS(CopyArgs);

void main() {
  const uint vectors = args.blocks * 4u, grid = gl_NumWorkGroups.x * WG_X;
  for (uint i = gl_GlobalInvocationID.x; i < vectors; i += grid) to[i] = from[i];
}
