// SPDX-License-Identifier: Apache-2.0
// What     The gradient of a decay of each head: sums over tokens.
// Who      A work-group owns a head, an item every WG_X-th token.
// Memory   A number of each token once.
// Numerics Float; the tokens of an item in order, then items in order.
// Assumes  recurrence/tile/combine has filled scratch.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"

layout(std430, binding = 0) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 0) buffer ScratchFloats { float scratch_floats[]; };
TYPED_OUTPUT(dgamma, 1)
BUFFER_ARGS(RecurArgs, 2);

shared float sums[WG_X];
#include "recurrence/tile/operands.glsl"

void main() {
#include "operations/recurrence_core/tile/gamma.h"
}
