// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/norms/quantised/forward.cl.
// Assumes  Rows and operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "operations/norms/quantised/args.h"
#include "operations/norms/quantised/tunables.def"

layout(std430, binding = 0) readonly buffer X { scalar x_elements[]; };
layout(std430, binding = 1) readonly buffer Weight { scalar weight_elements[]; };
layout(std430, binding = 1) readonly buffer WeightFloats { float weight_floats[]; };
layout(std430, binding = 2) readonly buffer Bias { scalar bias_elements[]; };
layout(std430, binding = 2) readonly buffer BiasFloats { float bias_floats[]; };
layout(std430, binding = 3) readonly buffer Residual { scalar residual_elements[]; };
layout(std430, binding = 4) buffer Y { uint y_words[]; };
layout(std430, binding = 5) writeonly buffer Sum { scalar sum_elements[]; };
layout(std430, binding = 6) writeonly buffer Scales { float scales[]; };
PUSH_ARGS(NormQuantisedArgs);

#define INDEX uint
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define RSQRT(x) inversesqrt(x)
#define ABSOLUTE(x) abs(x)
#define ARGS(name) (args.name)
#define ROW_OF(at) ((at).offset + outer * (at).stride0 + middle * (at).stride1 + inner * (at).stride2)
#define LOAD_X(i) load_scalar(x_elements[i])
#define LOAD_RESIDUAL(i) load_scalar(residual_elements[i])
#define LOAD_WEIGHT(i) load_weight(args.norm.weight_offset + (i))
#define LOAD_BIAS(i) load_bias(args.norm.bias_offset + (i))
#define STORE_SUM(value, i) sum_elements[i] = store_scalar(value)
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_CODE(bits, i) store_code(bits, i)
#define SUM_LINE(x) sum_line(x)
#define LARGEST_LINE(x) largest_line(x)

float load_weight(uint i) {
  if ((args.norm.features & NORM_WIDE_WEIGHT) != 0u) return weight_floats[i];
  return load_scalar(weight_elements[i]);
}
float load_bias(uint i) {
  if ((args.norm.features & NORM_WIDE_BIAS) != 0u) return bias_floats[i];
  return load_scalar(bias_elements[i]);
}
void store_code(uint bits, uint i) { STORE_BYTE(bits, y_words, i) }

shared float space[WG_X];
#define REDUCE_LINE(name, combine)                                                 \
  float name(float x) {                                                            \
    const uint item = gl_LocalInvocationID.x;                                      \
    space[item] = x;                                                               \
    for (uint width = WG_X / 2u; width > 0u; width /= 2u) {                        \
      barrier();                                                                   \
      if (item < width) space[item] = combine(space[item], space[item + width]);   \
    }                                                                              \
    barrier();                                                                     \
    const float all = space[0];                                                    \
    barrier();                                                                     \
    return all;                                                                    \
  }
#define PLUS(a, b) ((a) + (b))
REDUCE_LINE(sum_line, PLUS)
REDUCE_LINE(largest_line, max)

void main() {
#include "operations/norms/quantised/row.h"
}
