// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/gguf/dequantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantised_core/scale.h"
#include "operations/quantise/gguf/gguf.def"

layout(std430, binding = 0) readonly buffer Codes { uint code_words[]; };
TYPED_OUTPUT(floats, 1)
PUSH_ARGS(CodesArgs);

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GLOBAL_COUNT (gl_NumWorkGroups.x * WG_X)
#define ARGS(name) (args.name)
#define FLOATS(i) numbers[i]
#define LOAD_CODE_BYTE(at) LOAD_BYTE(code_words, at)
#define STORE_FLOATS_VECTOR store_floats_vector
#define STORE_FLOATS_STEPS store_floats_steps

float numbers[4];

void main() {
#include "operations/quantise/gguf/dequantise.h"
}
