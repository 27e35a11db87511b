// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/codes/quantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantise/codes.def"

TYPED_INPUT(floats, 0)
layout(std430, binding = 1) buffer Codes { uint code_words[]; };
layout(std430, binding = 2) writeonly buffer Scales { float scales[]; };
layout(std430, binding = 3) buffer Zeros { uint zero_words[]; };
PUSH_ARGS(CodesArgs);

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define FLOATS(j) eight[j]
#define CODE(j) code[j]
#define LOAD_FLOATS_VECTOR load_floats_vector
#define LOAD_FLOATS_STEPS load_floats_steps
#define STORE_SCALE(value, at) scales[at] = (value)
#define STORE_ZERO_BYTE(bits, at) STORE_BYTE(bits, zero_words, at)
#define STORE_ZERO_HALF_BYTE(bits, at) STORE_HALF_BYTE(bits, zero_words, at)
#define STORE_CODE_BYTE(bits, at) STORE_BYTE(bits, code_words, at)
#define STORE_CODE_WORD(bits, at) code_words[(at) / 4u] = (bits)

float eight[8];
uint code[8];

// Of the LANES items of a block; every item of the work-group comes here.
shared float space[WG_X];
float LARGEST_LINE(float x) {
  const uint item = gl_LocalInvocationID.x, lane = item % LANES;
  space[item] = x;
  for (uint width = LANES / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) space[item] = max(space[item], space[item + width]);
  }
  barrier();
  const float all = space[item - lane];
  barrier();
  return all;
}

void main() {
#include "operations/quantise/quantise.h"
}
