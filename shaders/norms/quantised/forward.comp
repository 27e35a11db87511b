// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/norms/quantised/forward.cl.
// Assumes  Rows and operands below 2^31 elements, ALIGNED is true where it is 1.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/codes.glsl"
#include "operations/norms/quantised/args.h"
#include "operations/norms/quantised/tunables.def"

layout(std430, binding = 0) readonly buffer X { scalar x_elements[]; };
layout(std430, binding = 0) readonly buffer XVectors { scalar4 x_vectors[]; };
layout(std430, binding = 0) readonly buffer XChunks { uvec4 x_chunks[]; };
layout(std430, binding = 1) readonly buffer Weight { scalar weight_elements[]; };
layout(std430, binding = 1) readonly buffer WeightVectors { scalar4 weight_vectors[]; };
layout(std430, binding = 1) readonly buffer WeightChunks { uvec4 weight_chunks[]; };
layout(std430, binding = 1) readonly buffer WeightFloats { float weight_floats[]; };
layout(std430, binding = 2) readonly buffer Bias { scalar bias_elements[]; };
layout(std430, binding = 2) readonly buffer BiasVectors { scalar4 bias_vectors[]; };
layout(std430, binding = 2) readonly buffer BiasChunks { uvec4 bias_chunks[]; };
layout(std430, binding = 2) readonly buffer BiasFloats { float bias_floats[]; };
layout(std430, binding = 3) readonly buffer Residual { scalar residual_elements[]; };
layout(std430, binding = 3) readonly buffer ResidualVectors { scalar4 residual_vectors[]; };
layout(std430, binding = 3) readonly buffer ResidualChunks { uvec4 residual_chunks[]; };
layout(std430, binding = 4) buffer Y { uint y_words[]; };
layout(std430, binding = 4) writeonly buffer YPairs { uvec2 y_pairs[]; };
layout(std430, binding = 5) writeonly buffer Sum { scalar sum_elements[]; };
layout(std430, binding = 5) writeonly buffer SumVectors { scalar4 sum_vectors[]; };
layout(std430, binding = 5) writeonly buffer SumChunks { uvec4 sum_chunks[]; };
layout(std430, binding = 6) writeonly buffer Scales { float scales[]; };
PUSH_ARGS(NormQuantisedArgs);

#define ARGS(name) (args.norm.name)
#define QUANTISED_ARGS(name) (args.name)
#define ABSOLUTE(x) abs(x)
#define NORM_WARP_LARGEST(x) (x)
#define STORE_SCALE(value, i) scales[i] = (value)
#define NORM_SUMS 1u
#define NORM_VECTORS (WG_Y * NORM_SUMS * (WG_X > 16u ? WG_X : 16u) / 4u)
#include "norms/core/operands.glsl"
LOAD_COLUMN(LOAD_X, x_elements, x_vectors)
LOAD_COLUMN(LOAD_RESIDUAL, residual_elements, residual_vectors)
LOAD_ANY_COLUMN(LOAD_WEIGHT, weight_elements, weight_vectors, weight_floats, NORM_WIDE_WEIGHT)
LOAD_ANY_COLUMN(LOAD_BIAS, bias_elements, bias_vectors, bias_floats, NORM_WIDE_BIAS)
STORE_COLUMN(STORE_SUM, sum_elements, sum_vectors)
LOAD_CHUNK(LOAD_X_CHUNK, LOAD_X, x_chunks)
LOAD_CHUNK(LOAD_RESIDUAL_CHUNK, LOAD_RESIDUAL, residual_chunks)
LOAD_CHUNK(LOAD_WEIGHT_CHUNK, LOAD_WEIGHT, weight_chunks)
LOAD_CHUNK(LOAD_BIAS_CHUNK, LOAD_BIAS, bias_chunks)
STORE_CHUNK(STORE_SUM_CHUNK, STORE_SUM, sum_chunks)

void STORE_CODES(vec4 x, uint type, uint at, uint left) {
  const uint word = code_word(x, type);
  if (ALIGNED != 0u) {
    y_words[at / 4u] = word;
    return;
  }
  for (uint i = 0u; i < min(left, 4u); ++i) STORE_BYTE((word >> 8u * i) & 0xffu, y_words, at + i)
}
void STORE_CODES_CHUNK(vec4 first, vec4 second, uint type, uint at, uint left) {
#if DTYPE != DTYPE_F32
  if (ALIGNED != 0u) {
    y_pairs[at / 8u] = uvec2(code_word(first, type), code_word(second, type));
    return;
  }
#endif
  STORE_CODES(first, type, at, left);
}
#include "operations/norms/lines.h"
#include "operations/norms/quantised/largest.h"
#include "operations/norms/weigh.h"

void main() {
#include "operations/norms/quantised/row.h"
}
