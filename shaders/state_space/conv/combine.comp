// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a causal convolution's weights and bias: the shares of all chunks, added up and rounded.
// Who      An item owns four channels of a tap, or of the bias.
// Memory   Shares once.
// Numerics Float; chunks in order.
// Assumes  state_space/conv/backward has run.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/causal_conv1d/args.h"

TYPED_OUTPUT(dweight, 0)
TYPED_OUTPUT(dbias, 1)
layout(std430, binding = 2) buffer Scratch { vec4 scratch_vectors[]; };
BUFFER_ARGS(ConvArgs, 3);
#include "state_space/conv/operands.glsl"

void main() {
#include "operations/causal_conv1d/combine.h"
}
