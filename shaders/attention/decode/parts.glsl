// SPDX-License-Identifier: Apache-2.0
// Parts of rows for attention/decode: ATTN_PART features as they lie in memory, and as floats. The shader declares the
// buffers.
#ifndef TESSERA_ATTENTION_DECODE_PARTS_GLSL
#define TESSERA_ATTENTION_DECODE_PARTS_GLSL
#include "lib/prelude.glsl"

// The part from `feature` on of a row that begins at element `at`; zeros behind the last of its features. Views of one
// binding: `elements`, `parts` of 16 bytes, and of 16-bit elements `halves` of them.
#if DTYPE == DTYPE_F32
#define LOAD_FLOATS(name, elements, halves, parts)                                              \
  uvec4 name(uint at, uint feature, uint features) {                                            \
    uvec4 part = uvec4(0u);                                                                     \
    if (VECTOR >= 4u) {                                                                         \
      if (feature < features) part = parts[(at + feature) / 4u];                                \
    } else {                                                                                    \
      [[unroll]] for (uint i = 0u; i < 4u; ++i)                                                 \
        if (feature + i < features) part[i] = floatBitsToUint(elements[at + feature + i]);      \
    }                                                                                           \
    return part;                                                                                \
  }
#else
#define LOAD_FLOATS(name, elements, halves, parts)                                              \
  uvec4 name(uint at, uint feature, uint features) {                                            \
    uvec4 part = uvec4(0u);                                                                     \
    if (VECTOR >= 8u) {                                                                         \
      if (feature < features) part = parts[(at + feature) / 8u];                                \
    } else if (VECTOR == 4u) {                                                                  \
      if (feature < features) part.xy = halves[(at + feature) / 4u];                            \
      if (feature + 4u < features) part.zw = halves[(at + feature) / 4u + 1u];                  \
    } else {                                                                                    \
      [[unroll]] for (uint i = 0u; i < 8u; ++i)                                                 \
        if (feature + i < features) part[i / 2u] |= uint(elements[at + feature + i]) << i % 2u * 16u; \
    }                                                                                           \
    return part;                                                                                \
  }
#endif

// Feature i of such a part.
float float_of_part(uvec4 part, uint i) {
#if DTYPE == DTYPE_F32
  return uintBitsToFloat(part[i]);
#else
  return widen(part[i / 2u])[i % 2u];
#endif
}

#if CODES
// The same of codes: eight of them in one word or two.
#define LOAD_KEY_PART(name, words)                                                              \
  uvec4 name(uint at, uint feature, uint features) {                                            \
    const bool halves = CODE_TYPE == DTYPE_I4;                                                  \
    const uint first = at + feature;                                                            \
    uvec4 part = uvec4(0u);                                                                     \
    if (VECTOR >= (halves ? 8u : 4u)) {                                                         \
      if (feature < features) part.x = words[halves ? first / 8u : first / 4u];                 \
      if (!halves && feature + 4u < features) part.y = words[first / 4u + 1u];                  \
    } else {                                                                                    \
      [[unroll]] for (uint i = 0u; i < 8u; ++i) {                                               \
        if (feature + i >= features) continue;                                                  \
        if (halves) part.x |= LOAD_HALF_BYTE(words, first + i) << i * 4u;                       \
        else part[i / 4u] |= LOAD_BYTE(words, first + i) << i % 4u * 8u;                        \
      }                                                                                         \
    }                                                                                           \
    return part;                                                                                \
  }

// A code of such a part. The exponents of halves are 8 more than those of e4m3fn, which shifts its numbers into their range of
// subnormals, too. Integers are converted: as floats of 2^23 and more, less that, they took an H200 10 % longer.
float key_float(uvec4 part, uint i) {
  if (CODE_TYPE == DTYPE_I4) return from_storage(CODE_TYPE, part.x >> i * 4u & 0xfu);
  const uint code = part[i / 4u] >> i % 4u * 8u & 0xffu;
  if (CODE_TYPE == DTYPE_I8) return from_storage(CODE_TYPE, code);
  if (CODE_TYPE == DTYPE_E5M2) return unpackHalf2x16(code << 8).x;  // the upper half of a half
  const float value = unpackHalf2x16((code & 0x80u) << 8 | (code & 0x7fu) << 7).x * 256.0;
  return (code & 0x7fu) == 0x7fu ? uintBitsToFloat(0x7fc00000u) : value;
}
#else
#define key_float float_of_part
#endif

#endif  // TESSERA_ATTENTION_DECODE_PARTS_GLSL
