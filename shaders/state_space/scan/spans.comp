// SPDX-License-Identifier: Apache-2.0
// What     What spans of tokens make of no state, and the sums of their steps.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens in order.
// Memory   u, delta and b once for each block of channels; states once.
// Numerics Float.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/selective_scan/args.h"
#include "operations/selective_scan/tile.def"

TYPED_INPUT(u, 0)
TYPED_INPUT(delta, 1)
TYPED_INPUT(a, 2)
TYPED_INPUT(b, 3)
TYPED_INPUT(bias, 4)
TYPED_INPUT(initial, 5)
layout(std430, binding = 6) readonly buffer Ordered { int ordered[]; };
layout(std430, binding = 6) buffer Scratch { vec4 scratch_vectors[]; };
layout(std430, binding = 6) buffer Numbers { float scratch_numbers[]; };
BUFFER_ARGS(ScanArgs, 7);
#include "state_space/scan/operands.glsl"

shared vec4 factors[BLOCK * SCAN_STATES / 2u];
shared vec2 steps[BLOCK * WG_X];

void main() {
#include "operations/selective_scan/spans.h"
}
