// SPDX-License-Identifier: Apache-2.0
// Features by fours, for the tile kernels of both passes: how they are read, and how they are added up.
#ifndef TESSERA_LIB_TILES_FEATURES_GLSL
#define TESSERA_LIB_TILES_FEATURES_GLSL
#include "lib/prelude.glsl"

// Writes to `to`, which is zero, the four features of the row that begins at element `at`.
#define LOAD_FOUR(to, elements, vectors, at, feature, features)                   \
  if (ALIGNED != 0u) {                                                            \
    if (feature < features) to = load_scalar4(vectors[(at + feature) / 4u]);      \
  } else {                                                                        \
    if (feature + 0u < features) to.x = load_scalar(elements[at + feature + 0u]); \
    if (feature + 1u < features) to.y = load_scalar(elements[at + feature + 1u]); \
    if (feature + 2u < features) to.z = load_scalar(elements[at + feature + 2u]); \
    if (feature + 3u < features) to.w = load_scalar(elements[at + feature + 3u]); \
  }

float dot_add(vec4 a, vec4 b, float sum) {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

vec4 add_product(vec4 sum, float weight, vec4 row) { return fma(vec4(weight), row, sum); }
// The same where a weight may be that of a hidden pair, whose row need not be finite.
vec4 add_seen_product(vec4 sum, float weight, vec4 row) {
  return weight == 0.0 ? sum : add_product(sum, weight, row);
}

#endif  // TESSERA_LIB_TILES_FEATURES_GLSL
