// SPDX-License-Identifier: Apache-2.0
// The body of quantised/codes/quantise in both languages. LARGEST_LINE(x) is of the LANES items of
// a block; LOAD_FLOATS_… give vectors of floats, STORE_… take bits; FLOATS(j) and CODE(j) are in
// registers.

// An eight of floats, 0 behind `left`.
#define CODES_LOAD_FLOATS()                                                         \
  const u32 from = CODES_AT(floats, row, column);                                   \
  FLOAT4 low = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), high = low;                     \
  if (aligned && left == 8u) {                                                      \
    low = LOAD_FLOATS_VECTOR(from, floats_type);                                    \
    high = LOAD_FLOATS_VECTOR(from + 4u, floats_type);                              \
  } else {                                                                          \
    low = LOAD_FLOATS_STEPS(from, 1u, min(left, 4u), floats_type);                  \
    if (left > 4u) high = LOAD_FLOATS_STEPS(from + 4u, 1u, left - 4u, floats_type); \
  }                                                                                 \
  FLOATS(0) = low.x;                                                                \
  FLOATS(1) = low.y;                                                                \
  FLOATS(2) = low.z;                                                                \
  FLOATS(3) = low.w;                                                                \
  FLOATS(4) = high.x;                                                               \
  FLOATS(5) = high.y;                                                               \
  FLOATS(6) = high.z;                                                               \
  FLOATS(7) = high.w;

#include "operations/quantise/block.h"
const bool is_unsigned = codes_are_unsigned(type);
float least = 0.0f, most = 0.0f;
for (u32 i = lane; i < steps; i += TO_U32(LANES)) {
  CODES_EIGHT(i)
  CODES_LOAD_FLOATS()
  // A NaN is none of them. Codes with a sign want magnitudes.
  UNROLL for (u32 j = 0u; j < 8u; ++j) {
    const float x = FLOATS(j);
    const float y = is_unsigned ? x : FLOAT_OF_BITS(BITS_OF_FLOAT(x) & 0x7fffffffu);
    if (is_unsigned) least = x < least ? x : least;
    most = y > most ? y : most;
  }
}
if (is_unsigned) least = -LARGEST_LINE(-least);
most = LARGEST_LINE(most);
const float scale = scale_of_codes(type, is_dynamic, least, most, ARGS(largest));
const float inverse = is_dynamic ? 0.0f : inverse_of_scale(scale);
const i32 zero =
    is_unsigned ? to_integer(quotient_by_scale(-least, scale, inverse), 0.0f, ARGS(largest)) : 0;
if (counts && lane == 0u) {
  STORE_SCALE(scale, CODES_AT(scale, tall, group));
  if (has_zeros) {
    const u32 at = CODES_AT(zero, tall, group);
    if (is_packed) {
      STORE_ZERO_HALF_BYTE(TO_U32(zero), at)
    } else {
      STORE_ZERO_BYTE(TO_U32(zero), at)
    }
  }
}
for (u32 i = lane; i < steps; i += TO_U32(LANES)) {
  CODES_EIGHT(i)
  CODES_LOAD_FLOATS()
  UNROLL for (u32 j = 0u; j < 8u; ++j) {
    const float x = is_dynamic ? FLOATS(j) * scale : quotient_by_scale(FLOATS(j), scale, inverse);
    CODE(j) = code_of_quotient(type, x, zero, ARGS(largest));
  }
  const u32 to = CODES_AT(codes, row, column);
  if (is_packed) {
    UNROLL for (u32 j = 0u; j < 4u; ++j) CODE(j) = CODE(2u * j) | CODE(2u * j + 1u) << 4;
  }
  const u32 first_byte = is_packed ? to / 2u : to, bytes = is_packed ? (left + 1u) / 2u : left;
  const u32 low_word = CODE(0) | CODE(1) << 8 | CODE(2) << 16 | CODE(3) << 24;
  if (aligned && left == 8u) {
    STORE_CODE_WORD(low_word, first_byte);
    if (!is_packed)
      STORE_CODE_WORD(CODE(4) | CODE(5) << 8 | CODE(6) << 16 | CODE(7) << 24, first_byte + 4u);
  } else {
    UNROLL for (u32 j = 0u; j < 8u; ++j) {
      if (j < bytes) STORE_CODE_BYTE(CODE(j), first_byte + j)
    }
  }
}
}
