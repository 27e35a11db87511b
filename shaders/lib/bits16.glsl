// SPDX-License-Identifier: Apache-2.0
// The 16-bit storage types as bits; halves are read by unpackHalf2x16().
#ifndef TESSERA_LIB_BITS16_GLSL
#define TESSERA_LIB_BITS16_GLSL

// Half bits of x, round to nearest even. packHalf2x16 may truncate, and may flush subnormal halves.
uint half_bits(float x) {
  const uint u = floatBitsToUint(x), sign = (u >> 16) & 0x8000u;
  const uint magnitude = u & 0x7fffffffu, exponent = magnitude >> 23;
  const bool normal = exponent > 112u;
  const uint drop = normal ? 13u : min(126u - exponent, 25u);  // low bits that half has no room for
  const uint exact = normal ? magnitude - 0x38000000u : (magnitude & 0x7fffffu) | 0x800000u;
  const uint rounded = (exact + (1u << (drop - 1u)) - 1u + ((exact >> drop) & 1u)) >> drop;
  return sign | (magnitude > 0x7f800000u ? 0x7e00u : min(rounded, 0x7c00u));
}

vec2 bfloat16_pair(uint pair) { return uintBitsToFloat(uvec2(pair << 16, pair & 0xffff0000u)); }
// bfloat16 bits of x, round to nearest even; NaN stays NaN.
uint bfloat16_bits(float x) {
  const uint u = floatBitsToUint(x);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

#endif  // TESSERA_LIB_BITS16_GLSL
