// SPDX-License-Identifier: Apache-2.0
// Elements of matrices as bits, in words of two. Includers of f16 have float16_t.
#ifndef TESSERA_LIB_COOPERATIVE_ELEMENTS_GLSL
#define TESSERA_LIB_COOPERATIVE_ELEMENTS_GLSL
#include "lib/prelude.glsl"

// Two floats, rounded.
#if DTYPE == DTYPE_F16
uint narrow_pair(vec2 x) { return packFloat2x16(f16vec2(x)); }
#else
uint narrow_pair(vec2 x) { return narrow(x.x) | narrow(x.y) << 16; }
#endif

// One of eight elements is infinite or NaN: one step above the largest exponent is the sign bit.
bool has_nonfinite(uvec4 x) {
#if DTYPE == DTYPE_BF16
  const uint exponents = 0x7f807f80u, one = 0x00800080u;
#else
  const uint exponents = 0x7c007c00u, one = 0x04000400u;
#endif
  return any(notEqual(((x & exponents) + one) & 0x80008000u, uvec4(0u)));
}

// The same of four floats, as bits.
bool has_nonfinite_float(uvec4 x) {
  const uint exponents = 0x7f800000u;
  return any(equal(x & exponents, uvec4(exponents)));
}

#endif  // TESSERA_LIB_COOPERATIVE_ELEMENTS_GLSL
