// SPDX-License-Identifier: Apache-2.0
// The body of quantised/codes/dequantise in both languages. LOAD_… give bits, STORE_FLOATS_… take
// vectors of floats; WORD(j) is in registers.

#define CODES_WIDEN(word)                                                         \
  MAKE_FLOAT4(widened_code(type, word, zero, scale, is_dynamic),                  \
              widened_code(type, (word) >> bits, zero, scale, is_dynamic),        \
              widened_code(type, (word) >> (2u * bits), zero, scale, is_dynamic), \
              widened_code(type, (word) >> (3u * bits), zero, scale, is_dynamic))

#include "operations/quantise/block.h"
float scale = 1.0f, zero = 0.0f;
if (counts) scale = LOAD_SCALE(CODES_AT(scale, tall, group));
if (counts && has_zeros) {
  const u32 at = CODES_AT(zero, tall, group);
  zero = from_storage(type, is_packed ? LOAD_ZERO_HALF_BYTE(at) : LOAD_ZERO_BYTE(at));
}
const u32 bits = is_packed ? 4u : 8u;
for (u32 i = lane; i < steps; i += TO_U32(LANES)) {
  CODES_EIGHT(i)
  const u32 from = CODES_AT(codes, row, column), first_byte = is_packed ? from / 2u : from;
  const u32 bytes = is_packed ? (left + 1u) / 2u : left;
  WORD(0) = 0u;
  WORD(1) = 0u;
  if (aligned && left == 8u) {
    WORD(0) = LOAD_CODE_WORD(first_byte);
    if (!is_packed) WORD(1) = LOAD_CODE_WORD(first_byte + 4u);
  } else {
    UNROLL for (u32 j = 0u; j < 8u; ++j) {
      if (j < bytes) WORD(j / 4u) |= LOAD_CODE_BYTE(first_byte + j) << (j % 4u * 8u);
    }
  }
  if (is_packed) WORD(1) = WORD(0) >> 16;
  const FLOAT4 low = CODES_WIDEN(WORD(0)), high = CODES_WIDEN(WORD(1));
  const u32 to = CODES_AT(floats, row, column);
  if (aligned && left == 8u) {
    STORE_FLOATS_VECTOR(low, to, floats_type);
    STORE_FLOATS_VECTOR(high, to + 4u, floats_type);
  } else {
    STORE_FLOATS_STEPS(low, to, 1u, min(left, 4u), floats_type);
    if (left > 4u) STORE_FLOATS_STEPS(high, to + 4u, 1u, left - 4u, floats_type);
  }
}
}
