// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/gguf/quantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantised_core/scale.h"
#define PRECISE precise
#include "operations/quantise/gguf/codes.h"

TYPED_INPUT(floats, 0)
layout(std430, binding = 1) buffer Codes { uint code_words[]; };
layout(std430, binding = 2) writeonly buffer Scales { float scales[]; };
PUSH_ARGS(CodesArgs);

#define FLOAT4 vec4
#define UNROLL [[unroll]]
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GLOBAL_COUNT (gl_NumWorkGroups.x * WG_X)
#define ARGS(name) (args.name)
#define FLOATS(i) numbers[i]
#define LOAD_FLOATS_VECTOR load_floats_vector
#define LOAD_FLOATS_STEPS load_floats_steps
#define STORE_SCALE(value, at) scales[at] = (value)
#define STORE_CODE_BYTE(bits, at) STORE_BYTE(bits, code_words, at)

float numbers[32];

void main() {
#include "operations/quantise/gguf/quantise.h"
}
