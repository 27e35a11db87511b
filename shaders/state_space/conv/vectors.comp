// SPDX-License-Identifier: Apache-2.0
// What     A causal convolution of few taps along tokens, for each channel by itself, with or without silu; the last inputs.
// Who      An item owns the channels of sixteen bytes and CHUNK tokens; WIDTH - 1 inputs stay in registers.
// Memory   Input once and WIDTH - 1 rows for a chunk, AHEAD tokens asked for at once; output once.
// Numerics Float, tap after tap; one rounding of each output.
// Assumes  Rows and states contiguous by sixteen bytes; operands below 2^31 elements; common/boundaries has run for packed
//          sequences.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/causal_conv1d/args.h"
#include "operations/causal_conv1d/vectors.def"
#include "operations/causal_conv1d/channels.h"

layout(std430, binding = 0) readonly buffer Inputs { uvec4 inputs[]; };
TYPED_INPUT(weight, 1)
TYPED_INPUT(bias, 2)
layout(std430, binding = 3) readonly buffer Initials { uvec4 initials[]; };
layout(std430, binding = 4) writeonly buffer Outputs { uvec4 outputs[]; };
layout(std430, binding = 5) writeonly buffer Finals { uvec4 finals[]; };
layout(std430, binding = 6) readonly buffer Ordered { int ordered[]; };
BUFFER_ARGS(ConvArgs, 7);
#include "state_space/conv/operands.glsl"

#define LOAD_INPUT_VECTOR(at) inputs[(at) / CONV_CHANNELS]
#define LOAD_INITIAL_VECTOR(at) initials[(at) / CONV_CHANNELS]
#define STORE_OUTPUT_VECTOR(x, at) outputs[(at) / CONV_CHANNELS] = x
#define STORE_FINAL_VECTOR(x, at) finals[(at) / CONV_CHANNELS] = x
#define LOAD_TAPS(at) load_weight_vector(at, TYPE_OF(CONV_TYPE_WEIGHT))

void main() {
#include "operations/causal_conv1d/vectors.h"
}
