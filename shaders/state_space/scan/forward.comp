// SPDX-License-Identifier: Apache-2.0
// What     A selective scan: state = exp(step a) state + step b u, output = state c + d u, times silu(z).
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens in order.
// Memory   Rows once; b and c once for each block of channels; states of spans once.
// Numerics Float; sums over states part after part; one rounding of each output.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences, carry where there are spans.
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
TYPED_INPUT(c, 4)
TYPED_INPUT(d, 5)
TYPED_INPUT(z, 6)
TYPED_INPUT(bias, 7)
TYPED_INPUT(initial, 8)
TYPED_OUTPUT(result, 9)
TYPED_OUTPUT(final, 10)
layout(std430, binding = 11) readonly buffer Ordered { int ordered[]; };
layout(std430, binding = 11) buffer Scratch { vec4 scratch_vectors[]; };
BUFFER_ARGS(ScanArgs, 12);
#include "state_space/scan/operands.glsl"

shared vec4 factors[BLOCK * SCAN_STATES / 2u];
shared vec2 steps[BLOCK * WG_X];
shared float sums[BLOCK * SCAN_ITEMS];

void main() {
#include "operations/selective_scan/forward.h"
}
