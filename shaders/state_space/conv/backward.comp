// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a causal convolution: of inputs and states; shares of those of weights and bias to scratch.
// Who      An item owns four channels of CHUNK tokens, or those of the state before a sequence; it goes back in time.
// Memory   Input and gradient once and WIDTH - 1 rows for a chunk, gradients once.
// Numerics Float; what stands before the activation is made once more.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/causal_conv1d/args.h"
#include "operations/causal_conv1d/columns.def"

TYPED_INPUT(input, 0)
TYPED_INPUT(weight, 1)
TYPED_INPUT(bias, 2)
TYPED_INPUT(initial, 3)
TYPED_INPUT(doutput, 4)
TYPED_INPUT(dfinal, 5)
TYPED_OUTPUT(dinput, 6)
TYPED_OUTPUT(dinitial, 7)
layout(std430, binding = 8) readonly buffer Ordered { int ordered[]; };
layout(std430, binding = 8) buffer Scratch { vec4 scratch_vectors[]; };
BUFFER_ARGS(ConvArgs, 9);
#include "state_space/conv/operands.glsl"

void main() {
#include "operations/causal_conv1d/backward.h"
}
