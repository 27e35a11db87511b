// SPDX-License-Identifier: Apache-2.0
// Codes as numbers of DTYPE for cooperative matrices, two of a word at a time. Includers define NIBBLES, and `middle`, what codes
// and zeros are turned by.
#ifndef TESSERA_QUANTISED_COOPERATIVE_NUMBERS_GLSL
#define TESSERA_QUANTISED_COOPERATIVE_NUMBERS_GLSL

// Pairs of codes half a word apart as numbers: of half bytes i and i + 4 of a word, or of bytes i and i + 2.
uint pair_of(uint word, uint i, uint zero) {
#if DTYPE == DTYPE_F16
  // Bits of a code among those of 2^10, in which the lowest bit is 1, or of 2^6, in which bit 4 is.
  const uint shift = NIBBLES ? i / 2u * 8u : i * 8u, place = NIBBLES ? i % 2u * 4u : 0u;
  const uint mask = (NIBBLES ? 0x000f000fu : 0x00ff00ffu) << place, power = (0x6400u - (place << 10)) * 0x00010001u;
  const uint bits = ((word >> shift) & mask) ^ (power | (middle << place) * 0x00010001u);
  return packFloat2x16(unpackFloat2x16(bits) - unpackFloat2x16(power | (zero << place) * 0x00010001u));
#else
  // The same of floats, whose upper halves these are.
  const uint place = (NIBBLES ? 4u : 8u) * i, mask = (NIBBLES ? 15u : 255u) << place, power = (150u - place) << 23;
  const float base = uintBitsToFloat(power | zero << place);
  const vec2 x = vec2(uintBitsToFloat((word & mask) ^ (power | middle << place)),
                      uintBitsToFloat(((word >> 16) & mask) ^ (power | middle << place))) - base;
  return floatBitsToUint(x.x) >> 16 | (floatBitsToUint(x.y) & 0xffff0000u);
#endif
}

#endif  // TESSERA_QUANTISED_COOPERATIVE_NUMBERS_GLSL
