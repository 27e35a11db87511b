// SPDX-License-Identifier: Apache-2.0
// The 16-bit storage types as bits; halves are read by unpackHalf2x16().
#ifndef TESSERA_LIB_BITS16_GLSL
#define TESSERA_LIB_BITS16_GLSL

// Half bits of x, round to nearest even. packHalf2x16 may truncate, and may flush subnormal halves.
uint half_bits(float x) {
  const uint u = floatBitsToUint(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  // Of a normal half, with 112 taken off the exponent; half has no room for 13 bits.
  const uint normal = min((magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13, 0x7c00u);
  // Of a subnormal one: the last bit of 0.5 is 2^-24, as its own is.
  const uint subnormal = floatBitsToUint(uintBitsToFloat(magnitude) + 0.5) - 0x3f000000u;
  return sign | (magnitude > 0x7f800000u ? 0x7e00u : magnitude < 0x38800000u ? subnormal : normal);
}

vec2 bfloat16_pair(uint pair) { return uintBitsToFloat(uvec2(pair << 16, pair & 0xffff0000u)); }
// bfloat16 bits of x, round to nearest even; NaN stays NaN.
uint bfloat16_bits(float x) {
  const uint u = floatBitsToUint(x);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

#endif  // TESSERA_LIB_BITS16_GLSL
