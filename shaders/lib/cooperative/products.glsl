// SPDX-License-Identifier: Apache-2.0
// Products of tiles by the matrix unit of any vendor. Includers define ELEMENT, MATRIX_M, MATRIX_N and
// MATRIX_K: the type and the shape of one product, M x K by K x N. `memory` is an array of uvec4 in
// shared memory, eight elements each, in which strides and places count.
#ifndef TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL
#define TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL

#define COOPERATIVE_LEFT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define COOPERATIVE_RIGHT coopmat<ELEMENT, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define COOPERATIVE_SUM coopmat<float, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
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
    [[unroll]] for (uint i = 0u; i < (M) * (N); ++i) product[i] = COOPERATIVE_SUM(0.0);                    \
    [[unroll]] for (uint k = 0u; k < (K); ++k) {                                                           \
      [[unroll]] for (uint n = 0u; n < (N); ++n) {                                                         \
        COOPERATIVE_RIGHT part;                                                                            \
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
      COOPERATIVE_LEFT weight[M];                                                                       \
      [[unroll]] for (uint m = 0u; m < (M); ++m) weight[m] = left(m, k);                                \
      [[unroll]] for (uint n = 0u; n < (N); ++n) {                                                      \
        COOPERATIVE_RIGHT part;                                                                         \
        coopMatLoad(part, memory, at + k * MATRIX_K * (STRIDE) + n * MATRIX_N / 8u, STRIDE, kRowMajor); \
        [[unroll]] for (uint m = 0u; m < (M); ++m)                                                      \
          sum[m * (N) + n] = coopMatMulAdd(weight[m], part, sum[m * (N) + n]);                          \
      }                                                                                                 \
    }                                                                                                   \
  }

// name(a, row, b, column): sum[M N] += rows from `row` on of the tile at `a` times columns from `column` on of that at `b`, over
// K MATRIX_K terms. By terms: a row (or column) to a line; otherwise a line has a term of all of them.
#define COOPERATIVE_ADD_TILES(name, memory, sum, M, N, K, A_BY_TERMS, A_STRIDE, B_BY_TERMS, B_STRIDE)             \
  void name(uint a, uint row, uint b, uint column) {                                                              \
    [[unroll]] for (uint k = 0u; k < (K); ++k) {                                                                  \
      COOPERATIVE_LEFT left[M];                                                                                   \
      [[unroll]] for (uint m = 0u; m < (M); ++m) {                                                                \
        const uint at = row + m * MATRIX_M;                                                                       \
        if (A_BY_TERMS != 0u) {                                                                                   \
          coopMatLoad(left[m], memory, a + at * (A_STRIDE) + k * MATRIX_K / 8u, A_STRIDE, kRowMajor);             \
        } else {                                                                                                  \
          coopMatLoad(left[m], memory, a + k * MATRIX_K * (A_STRIDE) + at / 8u, A_STRIDE, kColumnMajor);          \
        }                                                                                                         \
      }                                                                                                           \
      [[unroll]] for (uint n = 0u; n < (N); ++n) {                                                                \
        const uint at = column + n * MATRIX_N;                                                                    \
        COOPERATIVE_RIGHT right;                                                                                  \
        if (B_BY_TERMS != 0u) {                                                                                   \
          coopMatLoad(right, memory, b + at * (B_STRIDE) + k * MATRIX_K / 8u, B_STRIDE, kColumnMajor);            \
        } else {                                                                                                  \
          coopMatLoad(right, memory, b + k * MATRIX_K * (B_STRIDE) + at / 8u, B_STRIDE, kRowMajor);               \
        }                                                                                                         \
        [[unroll]] for (uint m = 0u; m < (M); ++m)                                                                \
          sum[m * (N) + n] = coopMatMulAdd(left[m], right, sum[m * (N) + n]);                                     \
      }                                                                                                           \
    }                                                                                                             \
  }

#endif  // TESSERA_LIB_COOPERATIVE_PRODUCTS_GLSL
