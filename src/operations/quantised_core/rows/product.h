// SPDX-License-Identifier: Apache-2.0
// The body of quantised/rows/product, in the text that OpenCL C and GLSL share. The language brings
// WORDS(i), PART(i) and SUM(i) in registers; SHARED(i), floats in local memory; how words and
// elements are read: LOAD_WORDS(at) of 16 bytes, LOAD_WEIGHT_BYTE(at), LOAD_INPUT_…, LOAD_SCALE,
// LOAD_ZERO_…; and STORE_OUTPUT.

// Four of eight words that hold a chunk, or fewer; what is behind the row's end is 0.
#define QUANT_FETCH_WORDS(first, count, at, bytes)                           \
  if (aligned && (bytes) == QUANT_BYTES_OF_CHUNK) {                          \
    UNROLL for (u32 v = 0u; v < (count) / 4u; ++v) {                         \
      const UINT4 four = LOAD_WORDS((at) + 16u * v);                         \
      WORDS(first + 4u * v) = four.x;                                        \
      WORDS(first + 4u * v + 1u) = four.y;                                   \
      WORDS(first + 4u * v + 2u) = four.z;                                   \
      WORDS(first + 4u * v + 3u) = four.w;                                   \
    }                                                                        \
  } else {                                                                   \
    UNROLL for (u32 v = 0u; v < (count); ++v) {                              \
      u32 word = 0u;                                                         \
      UNROLL for (u32 b = 0u; b < 4u; ++b) if (4u * v + b < (bytes)) word |= \
          LOAD_WEIGHT_BYTE((at) + 4u * v + b) << (8u * b);                   \
      WORDS(first + v) = word;                                               \
    }                                                                        \
  }

QUANT_CONSTANTS()
#define QUANT_BYTES_OF_CHUNK (4u * words)
const u32 item = LOCAL_ID_X;
const bool aligned = (features & QUANT_ALIGNED) != 0u;
const u32 blocks_m = (ARGS(m) + TO_U32(ROWS) - 1u) / TO_U32(ROWS);
const u32 blocks_n = (ARGS(n) + TO_U32(COLUMNS) - 1u) / TO_U32(COLUMNS);
for (u32 unit = GROUP_ID_X; UNIFORM(unit < blocks_m * blocks_n); unit += GROUP_COUNT_X) {
  // Blocks of rows one after the other: they share the weights.
  const u32 row0 = unit % blocks_m * TO_U32(ROWS), column0 = unit / blocks_m * TO_U32(COLUMNS);
  UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) SUM(i) = 0.0f;
  for (u32 chunk = item; chunk < chunks; chunk += TO_U32(WG_X)) {
    const u32 left = min(k - chunk * TO_U32(QUANT_CHUNK), TO_U32(QUANT_CHUNK));
    const u32 bytes = blocks || !nibbles ? (nibbles ? 16u : left) : (left + 1u) / 2u;
    UNROLL for (u32 c = 0u; c < TO_U32(COLUMNS); ++c) {
      // Columns behind the last one repeat it.
      const u32 column = min(column0 + c, ARGS(n) - 1u);
      u32 at;
      QUANT_FIND_CHUNK(column, chunk, at, SCALE(c), ZERO(c))
      QUANT_FETCH_WORDS(8u * c, words, at, bytes)
    }
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) PART(i) = 0.0f;
    UNROLL for (u32 j = 0u; j < 8u; ++j) {
      UNROLL for (u32 c = 0u; c < TO_U32(COLUMNS); ++c) {
        UINT4 code;
        if (FORMAT == QUANT_NIBBLES) {
          const u32 word = (WORDS(8u * c + j / 2u) ^ flip) >> (16u * (j % 2u));
          code = MAKE_UINT4(word & 15u, (word >> 4) & 15u, (word >> 8) & 15u, (word >> 12) & 15u);
        } else if (FORMAT == QUANT_Q4_0) {
          const u32 word = WORDS(8u * c + j % 4u) >> (4u * (j / 4u));
          code = MAKE_UINT4(word & 15u, (word >> 8) & 15u, (word >> 16) & 15u, (word >> 24) & 15u);
        } else {
          const u32 word = WORDS(8u * c + j) ^ flip;
          code = MAKE_UINT4(word & 255u, (word >> 8) & 255u, (word >> 16) & 255u, word >> 24);
        }
        DECODED(c) = FLOATS_OF(code) - MAKE_FLOAT4(ZERO(c), ZERO(c), ZERO(c), ZERO(c));
      }
      const u32 term = chunk * TO_U32(QUANT_CHUNK) + 4u * j;
      if (term < k) {
        UNROLL for (u32 r = 0u; r < TO_U32(ROWS); ++r) {
          const u32 row = min(row0 + r, ARGS(m) - 1u);  // behind the last one repeat it
          const u32 at = ARGS(input_offset) + row * ARGS(input_row) + term;
          const FLOAT4 x = (features & QUANT_VECTORS) != 0u && term + 4u <= k
                               ? LOAD_INPUT_VECTOR(at, INPUT_TYPE)
                               : LOAD_INPUT_STEPS(at, 1u, min(k - term, 4u), INPUT_TYPE);
          UNROLL for (u32 c = 0u; c < TO_U32(COLUMNS); ++c) PART(r * TO_U32(COLUMNS) + c) =
              tile_dot_add(DECODED(c), x, PART(r * TO_U32(COLUMNS) + c));
        }
      }
    }
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) SUM(i) =
        fma(SCALE(i % TO_U32(COLUMNS)), PART(i), SUM(i));
  }
  // As trees, all sums at once.
  UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) SHARED(i * TO_U32(WG_X) + item) = SUM(i);
  for (u32 width = TO_U32(WG_X) / 2u; width > 0u; width /= 2u) {
    SHARED_BARRIER();
    for (u32 i = item; i < width * TO_U32(ROWS * COLUMNS); i += TO_U32(WG_X)) {
      const u32 to = i / width * TO_U32(WG_X) + i % width;
      SHARED(to) += SHARED(to + width);
    }
  }
  SHARED_BARRIER();
  for (u32 i = item; i < TO_U32(ROWS * COLUMNS); i += TO_U32(WG_X)) {
    const u32 row = row0 + i / TO_U32(COLUMNS), column = column0 + i % TO_U32(COLUMNS);
    if (row < ARGS(m) && column < ARGS(n)) {
      float total = SHARED(i * TO_U32(WG_X));
      if ((features & QUANT_INPUT_SCALE) != 0u)
        total *=
            quant_scale(LOAD_INPUT_SCALE(ARGS(input_scale_offset) + row * ARGS(input_scale_row)));
      const FLOAT4 y = MAKE_FLOAT4(total, 0.0f, 0.0f, 0.0f);
      STORE_OUTPUT(y, ARGS(output_offset) + row * ARGS(output_row) + column, ARGS(output_type));
    }
  }
  SHARED_BARRIER();
}
