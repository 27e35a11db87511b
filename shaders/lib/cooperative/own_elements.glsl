// SPDX-License-Identifier: Apache-2.0
// Left matrices of f16 whose elements lanes make of what they hold, without a way through shared memory. Who has which element is
// the driver's secret, but a matrix of the numbers of its places tells it. Where COOPERATIVE_MAY_OWN and own_elements_fit() hold,
// lane l has of rows l / 4 and l / 4 + 8 the terms 2 (l % 4) + {0, 1, 8, 9}. Includers have the macros of products.glsl and LANES.
#ifndef TESSERA_LIB_COOPERATIVE_OWN_ELEMENTS_GLSL
#define TESSERA_LIB_COOPERATIVE_OWN_ELEMENTS_GLSL
#include "lib/cooperative/products.glsl"

#if DTYPE == DTYPE_F16
#define COOPERATIVE_MAY_OWN (MATRIX_M == 16u && MATRIX_K == 16u && LANES == 32u)

// What shared memory has for that matrix: vector n of 32, two to a row.
uvec4 numbers_of_places(uint n) {
  uvec4 pairs;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) pairs[i] = packHalf2x16(vec2(8u * n + 2u * i) + vec2(0.0, 1.0));
  return pairs;
}

// Of a lane: whether all of them do is for the caller to ask.
bool own_elements_fit(COOPERATIVE_LEFT places, uint lane) {
  bool fit = true;
  [[unroll]] for (uint i = 0u; i < 8u; ++i)
    fit = fit && uint(places[i]) == (lane / 4u + i / 4u * 8u) * 16u + i / 2u % 2u * 8u + lane % 4u * 2u + i % 2u;
  return fit;
}

// Pairs of the lane's terms: the lower and the upper one of its first row, then of its second row.
COOPERATIVE_LEFT left_of_pairs(uvec4 pairs) {
  COOPERATIVE_LEFT left;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const f16vec2 x = unpackFloat2x16(pairs[i]);
    left[2u * i] = x.x;
    left[2u * i + 1u] = x.y;
  }
  return left;
}
#else
#define COOPERATIVE_MAY_OWN false
#endif

#endif  // TESSERA_LIB_COOPERATIVE_OWN_ELEMENTS_GLSL
