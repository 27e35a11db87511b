// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias, and the sum; RMSNorm or LayerNorm over rows.
// Who      A line of WG_X items owns a row at a time, an item VECTORS vectors of four elements of it.
// Memory   x and residual once, output and sum once, where 4 * VECTORS * WG_X elements hold a row;
//          else what is beyond is read again, from a cache as a rule, for each pass. Weights: caches.
// Numerics Float; the mean comes off before squares are summed. Lanes, then folds, in one order.
// Assumes  Rows and operands below 2^31 elements, ALIGNED is true where it is 1.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/norms/args.h"
#include "operations/norms/rows/tunables.def"

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
layout(std430, binding = 4) writeonly buffer Y { scalar y_elements[]; };
layout(std430, binding = 4) writeonly buffer YVectors { scalar4 y_vectors[]; };
layout(std430, binding = 4) writeonly buffer YChunks { uvec4 y_chunks[]; };
layout(std430, binding = 5) writeonly buffer Sum { scalar sum_elements[]; };
layout(std430, binding = 5) writeonly buffer SumVectors { scalar4 sum_vectors[]; };
layout(std430, binding = 5) writeonly buffer SumChunks { uvec4 sum_chunks[]; };
PUSH_ARGS(NormForwardArgs);

#define NORM_SUMS 1u
#define NORM_VECTORS (WG_Y * NORM_SUMS * (WG_X > 16u ? WG_X : 16u) / 4u)
#include "norms/core/operands.glsl"
LOAD_COLUMN(LOAD_X, x_elements, x_vectors)
LOAD_COLUMN(LOAD_RESIDUAL, residual_elements, residual_vectors)
LOAD_ANY_COLUMN(LOAD_WEIGHT, weight_elements, weight_vectors, weight_floats, NORM_WIDE_WEIGHT)
LOAD_ANY_COLUMN(LOAD_BIAS, bias_elements, bias_vectors, bias_floats, NORM_WIDE_BIAS)
STORE_COLUMN(STORE_Y, y_elements, y_vectors)
STORE_COLUMN(STORE_SUM, sum_elements, sum_vectors)
LOAD_CHUNK(LOAD_X_CHUNK, LOAD_X, x_chunks)
LOAD_CHUNK(LOAD_RESIDUAL_CHUNK, LOAD_RESIDUAL, residual_chunks)
LOAD_CHUNK(LOAD_WEIGHT_CHUNK, LOAD_WEIGHT, weight_chunks)
LOAD_CHUNK(LOAD_BIAS_CHUNK, LOAD_BIAS, bias_chunks)
STORE_CHUNK(STORE_Y_CHUNK, STORE_Y, y_chunks)
STORE_CHUNK(STORE_SUM_CHUNK, STORE_SUM, sum_chunks)
#include "operations/norms/lines.h"
#include "operations/norms/weigh.h"

void main() {
#include "operations/norms/rows/forward.h"
}
