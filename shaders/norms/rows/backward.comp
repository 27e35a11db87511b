// SPDX-License-Identifier: Apache-2.0
// What     Gradients of RMSNorm and LayerNorm: of input and residual, and sums over this line's rows
//          of what makes those of weight and bias.
// Who      A work-group owns consecutive blocks of WG_Y rows; a line of WG_X items takes a row of each.
// Memory   x, residual, grad_output once, grad_input once, where 4 * VECTORS * WG_X elements hold a
//          row; a row of float sums for each line, twice.
// Numerics Float; every sum has one order.
// Assumes  Rows and operands below 2^31 elements, ALIGNED is true where it is 1; no work-group
//          without rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/norms/args.h"
#include "operations/norms/rows/tunables.def"

layout(std430, binding = 0) readonly buffer Dy { scalar dy_elements[]; };
layout(std430, binding = 0) readonly buffer DyVectors { scalar4 dy_vectors[]; };
layout(std430, binding = 0) readonly buffer DyChunks { uvec4 dy_chunks[]; };
layout(std430, binding = 1) readonly buffer X { scalar x_elements[]; };
layout(std430, binding = 1) readonly buffer XVectors { scalar4 x_vectors[]; };
layout(std430, binding = 1) readonly buffer XChunks { uvec4 x_chunks[]; };
layout(std430, binding = 2) readonly buffer Weight { scalar weight_elements[]; };
layout(std430, binding = 2) readonly buffer WeightVectors { scalar4 weight_vectors[]; };
layout(std430, binding = 2) readonly buffer WeightFloats { float weight_floats[]; };
layout(std430, binding = 3) readonly buffer Residual { scalar residual_elements[]; };
layout(std430, binding = 3) readonly buffer ResidualVectors { scalar4 residual_vectors[]; };
layout(std430, binding = 3) readonly buffer ResidualChunks { uvec4 residual_chunks[]; };
layout(std430, binding = 4) readonly buffer Dsum { scalar dsum_elements[]; };
layout(std430, binding = 4) readonly buffer DsumVectors { scalar4 dsum_vectors[]; };
layout(std430, binding = 4) readonly buffer DsumChunks { uvec4 dsum_chunks[]; };
layout(std430, binding = 5) writeonly buffer Dx { scalar dx_elements[]; };
layout(std430, binding = 5) writeonly buffer DxVectors { scalar4 dx_vectors[]; };
layout(std430, binding = 5) writeonly buffer DxChunks { uvec4 dx_chunks[]; };
layout(std430, binding = 6) writeonly buffer Dresidual { scalar dresidual_elements[]; };
layout(std430, binding = 6) writeonly buffer DresidualVectors { scalar4 dresidual_vectors[]; };
layout(std430, binding = 6) writeonly buffer DresidualChunks { uvec4 dresidual_chunks[]; };
layout(std430, binding = 7) buffer Scratch { vec4 scratch[]; };
BUFFER_ARGS(NormBackwardArgs, 8);

#define NORM_SUMS (CENTERED != 0 ? 3u : 2u)
#define NORM_VECTORS (WG_Y * NORM_SUMS * (WG_X > 16u ? WG_X : 16u) / 4u)
#include "norms/core/operands.glsl"
LOAD_COLUMN(LOAD_DY, dy_elements, dy_vectors)
LOAD_COLUMN(LOAD_X, x_elements, x_vectors)
LOAD_ANY_COLUMN(LOAD_WEIGHT, weight_elements, weight_vectors, weight_floats, NORM_WIDE_WEIGHT)
LOAD_COLUMN(LOAD_RESIDUAL, residual_elements, residual_vectors)
LOAD_COLUMN(LOAD_DSUM, dsum_elements, dsum_vectors)
STORE_COLUMN(STORE_DX, dx_elements, dx_vectors)
STORE_COLUMN(STORE_DRESIDUAL, dresidual_elements, dresidual_vectors)
LOAD_CHUNK(LOAD_DY_CHUNK, LOAD_DY, dy_chunks)
LOAD_CHUNK(LOAD_X_CHUNK, LOAD_X, x_chunks)
LOAD_CHUNK(LOAD_RESIDUAL_CHUNK, LOAD_RESIDUAL, residual_chunks)
LOAD_CHUNK(LOAD_DSUM_CHUNK, LOAD_DSUM, dsum_chunks)
STORE_CHUNK(STORE_DX_CHUNK, STORE_DX, dx_chunks)
STORE_CHUNK(STORE_DRESIDUAL_CHUNK, STORE_DRESIDUAL, dresidual_chunks)
#define LOAD_SCRATCH(at) scratch[(at) / 4u]
#define STORE_SCRATCH(value, at) scratch[(at) / 4u] = (value)
#include "operations/norms/lines.h"
#include "operations/norms/rows/backward_store.h"

void main() {
#include "operations/norms/rows/backward.h"
}
