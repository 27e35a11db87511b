// SPDX-License-Identifier: Apache-2.0
// What     What spans of tokens make of no gradient behind them.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens from the last one on.
// Memory   delta, z, c and the gradient once for each block of channels; states once.
// Numerics Float.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/selective_scan/args.h"
#include "operations/selective_scan/backward.def"

TYPED_INPUT(delta, 0)
TYPED_INPUT(a, 1)
TYPED_INPUT(c, 2)
TYPED_INPUT(z, 3)
TYPED_INPUT(bias, 4)
TYPED_INPUT(doutput, 5)
TYPED_INPUT(dfinal, 6)
layout(std430, binding = 7) readonly buffer Ordered { int ordered[]; };
layout(std430, binding = 7) buffer Scratch { vec4 scratch_vectors[]; };
BUFFER_ARGS(ScanArgs, 8);
#include "state_space/scan/operands.glsl"

shared vec4 back_steps[SPAN * WG_X];
shared vec4 factors[SPAN * SCAN_STATES / 2u];

void main() {
#include "operations/selective_scan/back_spans.h"
}
