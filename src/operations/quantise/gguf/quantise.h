// SPDX-License-Identifier: Apache-2.0
// The body of quantised/gguf/quantise in both languages: an item turns 32 floats into a block of
// GGUF's, a half as scale and their codes. LOAD_FLOATS_… give vectors of floats, STORE_CODE_BYTE
// and STORE_SCALE take bits and a float; FLOATS(i) are 32 registers.
//
//   As ggml has it: of q8_0 codes are multiples of the largest magnitude / 127, halves away from
//   zero; of q4_0 the element of the largest magnitude has code 0, that is -8 scales, and a code is
//   what is below 8.5 more. Both multiply by the inverse of the scale before it is a half.

const bool half_bytes = (ARGS(features) & CODES_HALF_BYTES) != 0u;
for (u32 unit = GLOBAL_ID; unit < ARGS(blocks); unit += GLOBAL_COUNT) {
  const u32 block = unit % ARGS(groups), rest = unit / ARGS(groups);
  const u32 row = rest % ARGS(talls), batch = rest / ARGS(talls);
  const u32 from = CODES_AT(floats, row, 32u * block);
  const u32 to = CODES_AT(codes, row, (half_bytes ? 18u : 34u) * block);
  float peak = 0.0f, most = 0.0f;  // of equal ones the first
  UNROLL for (u32 i = 0u; i < 8u; ++i) {
    const FLOAT4 x = (ARGS(features) & CODES_ALIGNED) != 0u
                         ? LOAD_FLOATS_VECTOR(from + 4u * i, ARGS(floats_type))
                         : LOAD_FLOATS_STEPS(from + 4u * i, 1u, 4u, ARGS(floats_type));
    FLOATS(4u * i) = x.x;
    FLOATS(4u * i + 1u) = x.y;
    FLOATS(4u * i + 2u) = x.z;
    FLOATS(4u * i + 3u) = x.w;
  }
  UNROLL for (u32 i = 0u; i < 32u; ++i) {
    const float size = FLOATS(i) < 0.0f ? -FLOATS(i) : FLOATS(i);
    if (size > peak) {
      peak = size;
      most = FLOATS(i);
    }
  }
  const float scale = half_bytes ? most * -0.125f : rounded_quotient(peak, 127.0f);
  const float inverse = gguf_inverse(scale);
  const u32 half_scale = gguf_half(scale);
  STORE_SCALE(quant_half(half_scale), CODES_AT(scale, row, block));
  STORE_CODE_BYTE(half_scale & 0xffu, to)
  STORE_CODE_BYTE(half_scale >> 8, to + 1u)
  if (half_bytes) {
    UNROLL for (u32 i = 0u; i < 16u; ++i) {
      const u32 low = gguf_half_byte(FLOATS(i), inverse);
      STORE_CODE_BYTE(low | gguf_half_byte(FLOATS(i + 16u), inverse) << 4, to + 2u + i)
    }
  } else {
    UNROLL for (u32 i = 0u; i < 32u; ++i) {
      STORE_CODE_BYTE(gguf_byte(FLOATS(i) * inverse), to + 2u + i)
    }
  }
}
