// SPDX-License-Identifier: Apache-2.0
// Parts of keys and values, 16 bytes as they lie in memory, on their way to rows of elements in local memory. Sums of products
// do not depend on the order of features, so codes take the order in which they come out of words: part p of `parts` has
// vectors p + parts j of its row, and inside a vector of eight CODE_OF_PLACE says which code lies where.
#ifndef TESSERA_ATTENTION_COOPERATIVE_CODES_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_CODES_GLSL
#include "lib/prelude.glsl"

#if CODES
#include "abi/storage.h"
#define CODE_OF_PLACE(i) (CODE_TYPE == DTYPE_I4 ? (i) / 2u + (i) % 2u * 4u : ((i) & 4u) | ((i) & 1u) * 2u | ((i) & 2u) / 2u)
// A code of e4m3fn stands for 2^8 times the element that is made of it.
#define CODE_EXPONENT (CODE_TYPE == DTYPE_E4M3FN ? 8.0 : 0.0)

// Two codes as halves: those in bytes 0 and 2 of a word, in its bytes 1 and 3 where they are floats, in its lowest bits of
// both halves where they are of 4 bits. An integer n below 2^10 is the half 2^10 + n less 2^10.
uint codes_as_halves(uint x) {
  if (CODE_TYPE == DTYPE_I8)
    return packFloat2x16(unpackFloat2x16((x & 0x00ff00ffu) ^ 0x64806480u) - f16vec2(1152.0hf));
  if (CODE_TYPE == DTYPE_I4)
    return packFloat2x16(unpackFloat2x16((x & 0x000f000fu) ^ 0x64086408u) - f16vec2(1032.0hf));
  if (CODE_TYPE == DTYPE_E5M2) return x & 0xff00ff00u;
  return (x & 0x7f007f00u) >> 1 | (x & 0x80008000u);
}
// Exact: bfloat16 has the bits of all codes.
uint codes_as_scalars(uint x) {
#if DTYPE == DTYPE_F16
  return codes_as_halves(x);
#else
  const uvec2 floats = floatBitsToUint(unpackHalf2x16(codes_as_halves(x)));
  return floats.x >> 16 | (floats.y & 0xffff0000u);
#endif
}

// Bits 7, 15, 23 and 31: the code there is a NaN that halves do not have.
uint odd_codes(uint word) { return CODE_TYPE == DTYPE_E4M3FN ? (word & 0x7f7f7f7fu) + 0x01010101u : 0u; }

// Vector j of a part.
uvec4 part_vector(uvec4 part, uint j) {
  if (CODE_TYPE == DTYPE_I4) {
    const uint word = part[j];
    return uvec4(codes_as_scalars(word), codes_as_scalars(word >> 4), codes_as_scalars(word >> 8),
                 codes_as_scalars(word >> 12));
  }
  const uint a = part[2u * j], b = part[2u * j + 1u];
  if (CODE_TYPE == DTYPE_I8)
    return uvec4(codes_as_scalars(a), codes_as_scalars(a >> 8), codes_as_scalars(b), codes_as_scalars(b >> 8));
  return uvec4(codes_as_scalars(a << 8), codes_as_scalars(a), codes_as_scalars(b << 8), codes_as_scalars(b));
}
#else
#define CODE_OF_PLACE(i) (i)
#define part_vector(part, j) (part)
#endif

// The feature in place i of vector `number` of a row.
#define FEATURE_AT(number, i, parts, part_elements) \
  ((number) % (parts) * (part_elements) + (number) / (parts) * 8u + CODE_OF_PLACE(i))

#endif  // TESSERA_ATTENTION_COOPERATIVE_CODES_GLSL
