// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/codes/dequantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantise/codes.def"

layout(std430, binding = 0) readonly buffer Codes { uint code_words[]; };
layout(std430, binding = 1) readonly buffer Scales { float scales[]; };
layout(std430, binding = 2) readonly buffer Zeros { uint zero_words[]; };
TYPED_OUTPUT(floats, 3)
PUSH_ARGS(CodesArgs);

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define WORD(j) word[j]
#define LOAD_SCALE(at) scales[at]
#define LOAD_ZERO_BYTE(at) LOAD_BYTE(zero_words, at)
#define LOAD_ZERO_HALF_BYTE(at) LOAD_HALF_BYTE(zero_words, at)
#define LOAD_CODE_BYTE(at) LOAD_BYTE(code_words, at)
#define LOAD_CODE_WORD(at) code_words[(at) / 4u]
#define STORE_FLOATS_VECTOR store_floats_vector
#define STORE_FLOATS_STEPS store_floats_steps

uint word[2];

void main() {
#include "operations/quantise/dequantise.h"
}
