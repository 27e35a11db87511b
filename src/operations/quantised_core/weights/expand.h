// SPDX-License-Identifier: Apache-2.0
// The body of quantised/weights/expand in both languages: weights as floats, [n, k]. The language
// brings what chunk.h asks for, and STORE_NUMBER(x, at).

QUANT_CONSTANTS()
for (u32 unit = GLOBAL_ID_X; unit < ARGS(n) * chunks; unit += GLOBAL_SIZE_X) {
  const u32 column = unit / chunks, chunk = unit % chunks, first = chunk * TO_U32(QUANT_CHUNK);
  const u32 count = min(k - first, TO_U32(QUANT_CHUNK));
  u32 at;
  float scale, zero;
  QUANT_FIND_CHUNK(column, chunk, at, scale, zero)
  for (u32 i = 0u; i < count; ++i) {
    u32 code;
    if (FORMAT == QUANT_NIBBLES) {
      code = ((LOAD_WEIGHT_BYTE(at + i / 2u) ^ flip) >> (i % 2u * 4u)) & 15u;
    } else if (FORMAT == QUANT_Q4_0) {
      code = (LOAD_WEIGHT_BYTE(at + i % 16u) >> (i / 16u * 4u)) & 15u;
    } else {
      code = (LOAD_WEIGHT_BYTE(at + i) ^ flip) & 255u;
    }
    STORE_NUMBER((TO_FLOAT(code) - zero) * scale, ARGS(output_offset) + column * k + first + i);
  }
}
