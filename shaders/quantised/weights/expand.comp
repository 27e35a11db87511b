// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/weights/expand.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/chunk.h"
#include "operations/quantised_core/scale.h"

layout(std430, binding = 0) readonly buffer Weight { uint weight_words[]; };
TYPED_INPUT(scales, 1)
layout(std430, binding = 2) readonly buffer Zeros { uint zero_words[]; };
layout(std430, binding = 3) writeonly buffer Numbers { float numbers[]; };
PUSH_ARGS(QuantArgs);

#define GLOBAL_ID_X gl_GlobalInvocationID.x
#define GLOBAL_SIZE_X (gl_NumWorkGroups.x * WG_X)
#define ARGS(name) (args.name)
#define FORMAT ARGS(format)
#define LOAD_WEIGHT_BYTE(at) LOAD_BYTE(weight_words, at)
#define LOAD_SCALE(at, type) load_scales_steps(at, 1u, 1u, type).x
#define LOAD_ZERO_BYTE(at) LOAD_BYTE(zero_words, at)
#define LOAD_ZERO_HALF_BYTE(at) LOAD_HALF_BYTE(zero_words, at)
#define STORE_NUMBER(x, at) numbers[at] = (x)

void main() {
#include "operations/quantised_core/weights/expand.h"
}
