// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a selective scan: of rows and initial states; shares of those of b and c for blocks of channels, and of
//          a, d and delta_bias for spans.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens from the last one on.
// Memory   Rows once; b and c once for each block of channels; the states of a span and their gradients in local memory.
// Numerics Float; sums over channels lane after lane.
// Assumes  Operands and scratch below 2^31 elements; carry has run both ways.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/selective_scan/args.h"
#include "operations/selective_scan/backward.def"

TYPED_INPUT(u, 0)
TYPED_INPUT(delta, 1)
TYPED_INPUT(a, 2)
TYPED_INPUT(b, 3)
TYPED_INPUT(c, 4)
TYPED_INPUT(d, 5)
TYPED_INPUT(z, 6)
TYPED_INPUT(bias, 7)
TYPED_INPUT(initial, 8)
TYPED_INPUT(doutput, 9)
TYPED_INPUT(dfinal, 10)
TYPED_OUTPUT(du, 11)
TYPED_OUTPUT(ddelta, 12)
TYPED_OUTPUT(dz, 13)
TYPED_OUTPUT(dinitial, 14)
layout(std430, binding = 15) readonly buffer Ordered { int ordered[]; };
layout(std430, binding = 15) buffer Scratch { vec4 scratch_vectors[]; };
layout(std430, binding = 15) buffer Numbers { float scratch_numbers[]; };
BUFFER_ARGS(ScanArgs, 16);
#include "state_space/scan/operands.glsl"

shared vec4 inner[SPAN * SCAN_FOURS * SCAN_ITEMS];
shared vec4 of_b[SPAN * SCAN_FOURS * SCAN_ITEMS];
shared vec4 back_steps[SPAN * WG_X];
shared vec4 factors[SPAN * SCAN_STATES / 2u];
shared float sums[3u * SPAN * SCAN_ITEMS];
shared float totals[2u * SCAN_ITEMS];

void main() {
#include "operations/selective_scan/gradients.h"
}
