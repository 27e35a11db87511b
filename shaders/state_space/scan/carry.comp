// SPDX-License-Identifier: Apache-2.0
// What     Puts spans together: the states before them, or the gradients behind them, in place of what they make of none.
// Who      A work-group owns WG_X channels of a batch entry, an item ROWS states of a channel, span after span.
// Memory   States of spans once each way.
// Numerics Float; factors of spans are exp of sums of steps.
// Assumes  Operands and scratch below 2^31 elements; spans or back_spans has run.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/selective_scan/args.h"
#include "operations/selective_scan/tile.def"

TYPED_INPUT(a, 0)
layout(std430, binding = 1) buffer Scratch { vec4 scratch_vectors[]; };
layout(std430, binding = 1) buffer Numbers { float scratch_numbers[]; };
BUFFER_ARGS(ScanArgs, 2);
#include "state_space/scan/operands.glsl"

void main() {
#include "operations/selective_scan/carry.h"
}
