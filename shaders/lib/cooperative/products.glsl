// SPDX-License-Identifier: Apache-2.0
// Products of tiles by the matrix unit of any vendor. Includers define ELEMENT, MATRIX_M, MATRIX_N and
// MATRIX_K: the type and the shape of one product, M x K by K x N. `memory` is an array of uvec4 in
// shared memory, eight elements each, in which strides and places count.
#ifndef TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL
#define TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL

#define LEFT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define RIGHT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
const int kRowMajor = gl_CooperativeMatrixLayoutRowMajor;
const int kColumnMajor = gl_CooperativeMatrixLayoutColumnMajor;

// name(at, feature, features): eight features of the row at element `at`; zero where there is none.
#define COOPERATIVE_LOAD_EIGHT(name, elements, vectors)                                           \
  uvec4 name(uint at, uint feature, uint features) {                                     \
    uvec4 x = uvec4(0u);                                                                 \
    if (ALIGNED != 0u) {                                                                 \
      if (feature < features) x = vectors[(at + feature) / 8u];                          \
    } else {                                                                             \
      [[unroll]] for (uint i = 0u; i < 8u; ++i) if (feature + i < features) x[i / 2u] |= \
          uint(elements[at + feature + i]) << i % 2u * 16u;                              \
    }                                                                                    \
    return x;                                                                            \
  }

// name(at): product[M N] = left[M K] times the rows at `at`, transposed.
#define COOPERATIVE_TAKE_PRODUCTS(name, memory, left, product, M, N, K, STRIDE)                            \
  void name(uint at) {                                                                                     \
    [[unroll]] for (uint i = 0u; i < (M) * (N); ++i) product[i] = SUM(0.0);                                \
    [[unroll]] for (uint k = 0u; k < (K); ++k) {                                                           \
      [[unroll]] for (uint n = 0u; n < (N); ++n) {                                                         \
        RIGHT part;                                                                                        \
        coopMatLoad(part, memory, at + n * MATRIX_N * (STRIDE) + k * MATRIX_K / 8u, STRIDE, kColumnMajor); \
        [[unroll]] for (uint m = 0u; m < (M); ++m)                                                         \
          product[m * (N) + n] = coopMatMulAdd(left[m * (K) + k], part, product[m * (N) + n]);             \
      }                                                                                                    \
    }                                                                                                      \
  }

// name(at): sum[M N] += left(m, k) times the rows at `at`.
#define COOPERATIVE_ADD_PRODUCTS(name, memory, left, sum, M, N, K, STRIDE)                              \
  void name(uint at) {                                                                                  \
    [[unroll]] for (uint k = 0u; k < (K); ++k) {                                                        \
      LEFT weight[M];                                                                                   \
      [[unroll]] for (uint m = 0u; m < (M); ++m) weight[m] = left(m, k);                                \
      [[unroll]] for (uint n = 0u; n < (N); ++n) {                                                      \
        RIGHT part;                                                                                     \
        coopMatLoad(part, memory, at + k * MATRIX_K * (STRIDE) + n * MATRIX_N / 8u, STRIDE, kRowMajor); \
        [[unroll]] for (uint m = 0u; m < (M); ++m)                                                      \
          sum[m * (N) + n] = coopMatMulAdd(weight[m], part, sum[m * (N) + n]);                          \
      }                                                                                                 \
    }                                                                                                   \
  }

#endif  // TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL
