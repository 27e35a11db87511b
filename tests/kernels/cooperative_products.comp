// SPDX-License-Identifier: Apache-2.0
// lib/cooperative/products.glsl alone: product = a b^T, then sums = a c, of f16 by one sub-group. Of a
// there are MATRIX_M rows, of b 2 MATRIX_N, of c 2 MATRIX_K, and of features 2 MATRIX_K.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#define DTYPE DTYPE_F16
#include "lib/prelude.glsl"
CONSTANT(3, MATRIX_M, 16)
CONSTANT(4, MATRIX_N, 16)
CONSTANT(5, MATRIX_K, 16)
#define ALIGNED 1u
#include "lib/cooperative/products.glsl"

layout(std430, binding = 0) readonly buffer A { scalar a[]; };
layout(std430, binding = 0) readonly buffer AVectors { uvec4 a8[]; };
layout(std430, binding = 1) readonly buffer B { scalar b[]; };
layout(std430, binding = 1) readonly buffer BVectors { uvec4 b8[]; };
layout(std430, binding = 2) readonly buffer C { scalar c[]; };
layout(std430, binding = 2) readonly buffer CVectors { uvec4 c8[]; };
layout(std430, binding = 3) writeonly buffer Product { float product_out[]; };
layout(std430, binding = 4) writeonly buffer Sums { float sum_out[]; };

// Strides in vectors of eight elements, one more than they have.
const uint FEATURES = 2u * MATRIX_K, COLUMNS = 2u * MATRIX_N;
const uint A_STRIDE = FEATURES / 8u + 1u, C_STRIDE = COLUMNS / 8u + 1u;
const uint B_AT = MATRIX_M * A_STRIDE, C_AT = B_AT + COLUMNS * A_STRIDE;
shared uvec4 memory[C_AT + FEATURES * C_STRIDE];
shared float results[MATRIX_M * COLUMNS];

COOPERATIVE_LOAD_EIGHT(load_a, a, a8)
COOPERATIVE_LOAD_EIGHT(load_b, b, b8)
COOPERATIVE_LOAD_EIGHT(load_c, c, c8)

LEFT left[2];
SUM product[2], sum[2];
LEFT weights(uint m, uint k) { return left[k]; }
COOPERATIVE_TAKE_PRODUCTS(take, memory, left, product, 1u, 2u, 2u, A_STRIDE)
COOPERATIVE_ADD_PRODUCTS(add, memory, weights, sum, 1u, 2u, 2u, C_STRIDE)

void main() {
  const uint item = gl_LocalInvocationID.x;
  for (uint n = item; n < MATRIX_M * FEATURES / 8u; n += WG_X) {
    const uint row = n / (FEATURES / 8u), vector = n % (FEATURES / 8u);
    memory[row * A_STRIDE + vector] = load_a(row * FEATURES, 8u * vector, FEATURES);
  }
  for (uint n = item; n < COLUMNS * FEATURES / 8u; n += WG_X) {
    const uint row = n / (FEATURES / 8u), vector = n % (FEATURES / 8u);
    memory[B_AT + row * A_STRIDE + vector] = load_b(row * FEATURES, 8u * vector, FEATURES);
  }
  for (uint n = item; n < FEATURES * COLUMNS / 8u; n += WG_X) {
    const uint row = n / (COLUMNS / 8u), vector = n % (COLUMNS / 8u);
    memory[C_AT + row * C_STRIDE + vector] = load_c(row * COLUMNS, 8u * vector, COLUMNS);
  }
  barrier();
  [[unroll]] for (uint k = 0u; k < 2u; ++k)
    coopMatLoad(left[k], memory, k * MATRIX_K / 8u, A_STRIDE, kRowMajor);
  take(B_AT);
  [[unroll]] for (uint n = 0u; n < 2u; ++n) sum[n] = SUM(0.0);
  add(C_AT);
  [[unroll]] for (uint n = 0u; n < 2u; ++n)
    coopMatStore(product[n], results, n * MATRIX_N, COLUMNS, kRowMajor);
  barrier();
  for (uint n = item; n < MATRIX_M * COLUMNS; n += WG_X) product_out[n] = results[n];
  barrier();
  [[unroll]] for (uint n = 0u; n < 2u; ++n)
    coopMatStore(sum[n], results, n * MATRIX_N, COLUMNS, kRowMajor);
  barrier();
  for (uint n = item; n < MATRIX_M * COLUMNS; n += WG_X) sum_out[n] = results[n];
}
