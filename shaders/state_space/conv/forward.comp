// SPDX-License-Identifier: Apache-2.0
// What     A causal convolution of few taps along tokens, for each channel by itself, with or without silu; the last inputs.
// Who      An item owns four channels of CHUNK tokens, or those of the state behind a sequence.
// Memory   Input once and WIDTH - 1 rows for a chunk, output once.
// Numerics Float, tap after tap; one rounding of each output.
// Assumes  Operands below 2^31 elements; common/boundaries has run for packed sequences.
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
TYPED_OUTPUT(output, 4)
TYPED_OUTPUT(final, 5)
layout(std430, binding = 6) readonly buffer Ordered { int ordered[]; };
BUFFER_ARGS(ConvArgs, 7);
#include "state_space/conv/operands.glsl"

void main() {
#include "operations/causal_conv1d/forward.h"
}
