// SPDX-License-Identifier: Apache-2.0
// The body of quantised/gguf/dequantise in both languages: an item turns a block of GGUF's into 32
// floats. LOAD_CODE_BYTE gives bits, STORE_FLOATS_… take vectors of floats; FLOATS(i) are four
// registers.

for (u32 unit = GLOBAL_ID; unit < ARGS(blocks); unit += GLOBAL_COUNT) {
  const u32 block = unit % ARGS(groups), rest = unit / ARGS(groups);
  const u32 row = rest % ARGS(talls), batch = rest / ARGS(talls);
  const u32 from = CODES_AT(codes, row, (HALF_BYTES != 0 ? 18u : 34u) * block);
  const u32 to = CODES_AT(floats, row, 32u * block);
  const float scale = quant_half(LOAD_CODE_BYTE(from) | LOAD_CODE_BYTE(from + 1u) << 8);
  for (u32 i = 0u; i < 32u; i += 4u) {
    UNROLL for (u32 j = 0u; j < 4u; ++j) {
      i32 code;
      if (HALF_BYTES != 0) {
        const u32 both = LOAD_CODE_BYTE(from + 2u + (i + j) % 16u);
        code = TO_INT((i < 16u ? both : both >> 4) & 15u) - 8;
      } else {
        code = from_i8(LOAD_CODE_BYTE(from + 2u + i + j));
      }
      FLOATS(j) = TO_FLOAT(code) * scale;
    }
    const FLOAT4 x = MAKE_FLOAT4(FLOATS(0), FLOATS(1), FLOATS(2), FLOATS(3));
    if ((ARGS(features) & CODES_ALIGNED) != 0u) {
      STORE_FLOATS_VECTOR(x, to + i, ARGS(floats_type));
    } else {
      STORE_FLOATS_STEPS(x, to + i, 1u, 4u, ARGS(floats_type));
    }
  }
}
