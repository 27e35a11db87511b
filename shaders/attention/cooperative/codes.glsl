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
// What an element that is made of a code is multiplied by. A code of e4m3fn has the bits of a half 2^-8 times as large, and such
// a half is multiplied by 69 2^9: exactly, and only the code that is no number, which has the bits of 480, becomes infinite.
// bfloat16 holds no such multiples.
#define ODD_CODES (CODE_TYPE == DTYPE_E4M3FN)
#define ODD_CODES_ARE_INFINITE (ODD_CODES && DTYPE == DTYPE_F16)
const float kCodeUnit = ODD_CODES_ARE_INFINITE ? 256.0 / 35328.0 : ODD_CODES ? 256.0 : 1.0;

// Two codes as halves: those in bytes 0 and 2 of a word, in its bytes 1 and 3 where they are floats, in its lowest bits of
// both halves where they are of 4 bits. An integer n below 2^10 is the half 2^10 + n less 2^10.
uint codes_as_halves(uint x) {
  if (CODE_TYPE == DTYPE_I8)
    return packFloat2x16(unpackFloat2x16((x & 0x00ff00ffu) ^ 0x64806480u) - f16vec2(1152.0hf));
  if (CODE_TYPE == DTYPE_I4)
    return packFloat2x16(unpackFloat2x16((x & 0x000f000fu) ^ 0x64086408u) - f16vec2(1032.0hf));
  return x & 0xff00ff00u;
}
// Of e4m3fn, codes in bytes 1 and 3 as above, or with `low` in bytes 0 and 2. On NVIDIA's GPUs shifts to the left and products
// have another pipe than ands and ors, which bind.
uint e4m3fn_as_halves(uint x, bool low) {
  const uint magnitudes = low ? x << 7 : x >> 1, signs = low ? x << 8 : x;
  const uint halves = (magnitudes & 0x3f803f80u) | (signs & 0x80008000u);
  return ODD_CODES_ARE_INFINITE ? packFloat2x16(unpackFloat2x16(halves) * f16vec2(35328.0hf)) : halves;
}
// Exact: bfloat16 has the bits of all codes.
uint as_scalars(uint halves) {
#if DTYPE == DTYPE_F16
  return halves;
#else
  const uvec2 floats = floatBitsToUint(unpackHalf2x16(halves));
  return floats.x >> 16 | (floats.y & 0xffff0000u);
#endif
}
uint codes_as_scalars(uint x) { return as_scalars(codes_as_halves(x)); }

// Bits 7, 15, 23 and 31: the code there is a NaN that halves do not have.
uint odd_codes(uint word) { return (word & 0x7f7f7f7fu) + 0x01010101u; }

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
  if (CODE_TYPE == DTYPE_E4M3FN) {
    return uvec4(as_scalars(e4m3fn_as_halves(a, true)), as_scalars(e4m3fn_as_halves(a, false)),
                 as_scalars(e4m3fn_as_halves(b, true)), as_scalars(e4m3fn_as_halves(b, false)));
  }
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
