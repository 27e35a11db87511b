// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/quantised/rows/product.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/stored.glsl"
#include "lib/tiles/features.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/chunk.h"
#include "operations/quantised_core/scale.h"
#include "operations/quantised_core/rows/rows.def"

STORED_INPUT(x, 0)
layout(std430, binding = 1) readonly buffer Weight { uint weight_words[]; };
layout(std430, binding = 1) readonly buffer WeightVectors { uvec4 weight_vectors[]; };
TYPED_INPUT(scale, 2)
layout(std430, binding = 3) readonly buffer Zero { uint zero_words[]; };
layout(std430, binding = 4) readonly buffer InputScale { float input_scales[]; };
TYPED_OUTPUT(y, 5)
PUSH_ARGS(QuantArgs);

#define FLOAT4 vec4
#define UINT4 uvec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define MAKE_UINT4(x, y, z, w) uvec4(x, y, z, w)
#define FLOATS_OF(x) vec4(x)
#define UNROLL [[unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define WORDS(i) word_list[i]
#define PART(i) part[i]
#define SUM(i) sum[i]
#define SCALE(i) scale_of[i]
#define ZERO(i) zero_of[i]
#define DECODED(i) decoded[i]
#define SHARED(i) shared_sums[i]
#define SHARED_BARRIER() barrier()
#define LOAD_WORDS(at) weight_vectors[(at) / 16u]
#define LOAD_WEIGHT_BYTE(at) LOAD_BYTE(weight_words, at)
#define LOAD_SCALE(at, type) load_scale_steps(at, 1u, 1u, type).x
#define LOAD_ZERO_BYTE(at) LOAD_BYTE(zero_words, at)
#define LOAD_ZERO_HALF_BYTE(at) LOAD_HALF_BYTE(zero_words, at)
#define LOAD_INPUT_VECTOR load_x_stored_vector
#define LOAD_INPUT_STEPS load_x_stored_steps
#define LOAD_INPUT_SCALE(at) input_scales[at]
#define STORE_OUTPUT(x, at, type) store_y_steps(x, at, 1u, 1u, type)

shared float shared_sums[ROWS * COLUMNS * WG_X];
uint word_list[8u * COLUMNS];
float part[ROWS * COLUMNS], sum[ROWS * COLUMNS], scale_of[COLUMNS], zero_of[COLUMNS];
vec4 decoded[COLUMNS];

void main() {
#include "operations/quantised_core/rows/product.h"
}
