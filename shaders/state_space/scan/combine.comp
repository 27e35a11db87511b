// SPDX-License-Identifier: Apache-2.0
// What     Gradients of b, c, a, d and delta_bias of a selective scan: their shares, added up and rounded.
// Who      An item owns an element.
// Memory   Shares once.
// Numerics Float; blocks and spans in order.
// Assumes  Operands and scratch below 2^31 elements; gradients has run.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/selective_scan/args.h"

TYPED_OUTPUT(db, 0)
TYPED_OUTPUT(dc, 1)
TYPED_OUTPUT(da, 2)
TYPED_OUTPUT(dd, 3)
TYPED_OUTPUT(dbias, 4)
layout(std430, binding = 5) buffer Numbers { float scratch_numbers[]; };
BUFFER_ARGS(ScanArgs, 6);
#include "state_space/scan/operands.glsl"

void main() {
#include "operations/selective_scan/combine.h"
}
