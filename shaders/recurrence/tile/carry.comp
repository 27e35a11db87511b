// SPDX-License-Identifier: Apache-2.0
// What     Puts spans of sequences together: the state before each of them in place of what it makes of nothing.
// Who      An item owns four columns of a key dim, one after the other.
// Memory   States of spans once each way.
// Numerics Float, span after span.
// Assumes  Scratch below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/recurrence_core/args.h"

layout(std430, binding = 0) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 0) readonly buffer ScratchFloats { float scratch_floats[]; };
PUSH_ARGS(RecurSpanArgs);
#include "recurrence/tile/operands.glsl"

void main() {
#include "operations/recurrence_core/tile/carry.h"
}
