// SPDX-License-Identifier: Apache-2.0
// What kernels share whose lines of items keep a row in registers. Text for OpenCL C and GLSL;
// norms/core/operands.clh and norms/core/operands.glsl say how each of them reads operands and
// meets its work-group.
#ifndef TESSERA_OPERATIONS_NORMS_LINES_H
#define TESSERA_OPERATIONS_NORMS_LINES_H

// Row n of a call by its places along the leading axes. Most calls have but one.
FUNCTION UINT3 norm_place(u32 rows, u32 rows1, u32 rows2, u32 row) {
  if (rows2 == rows) return MAKE_UINT3(0u, 0u, row);
  const u32 rest = row / rows2, outer = rest / rows1;
  return MAKE_UINT3(outer, rest - outer * rows1, row - rest * rows2);
}

// The first element of a row.
FUNCTION INDEX norm_row(STRUCT(NormRows) at, UINT3 place) {
  return TO_INDEX(at.offset) + TO_INDEX(place.x) * at.stride0 + TO_INDEX(place.y) * at.stride1 +
         TO_INDEX(place.z) * at.stride2;
}

// `value` where its row has that many elements left, 0 elsewhere.
FUNCTION FLOAT4 norm_part(FLOAT4 value, u32 left) {
  if (ALIGNED != 0) return value;
  return MAKE_FLOAT4(value.x, left > 1u ? value.y : 0.0f, left > 2u ? value.z : 0.0f,
                     left > 3u ? value.w : 0.0f);
}

FUNCTION float norm_sum(FLOAT4 v) { return (v.x + v.y) + (v.z + v.w); }

// Sums over the items of a line, the same in all of them: of the first NORM_SUMS components of
// `value`. Where a line is NORM_WARPS warps that add without work-group memory, those do; else
// lanes fold onto the first NORM_FOLD. Everybody adds what is left, in one order. NORM_SPACE(i) is
// float i of NORM_FLOATS in work-group memory, NORM_SPACE4(i) floats 4 i to 4 i
// + 3.
#define NORM_FOLD 16u
#define NORM_LINE (TO_U32(WG_X) > NORM_FOLD ? TO_U32(WG_X) : NORM_FOLD)
FUNCTION FLOAT4 norm_total(NORM_PARAMETERS u32 line, u32 lane, FLOAT4 value) {
  const u32 first = line * NORM_SUMS * NORM_LINE;
  float parts[3];
  parts[0] = value.x;
  parts[1] = value.y;
  parts[2] = value.z;
  if (NORM_WARPS != 0u) {
    UNROLL for (u32 n = 0u; n < NORM_SUMS; ++n) {
      parts[n] = NORM_WARP_SUM(parts[n]);
      if (lane % 32u == 0u) NORM_SPACE(first + n * NORM_LINE + lane / 32u) = parts[n];
    }
    NORM_BARRIER();
    UNROLL for (u32 n = 0u; n < NORM_SUMS; ++n) {
      parts[n] = NORM_SPACE(first + n * NORM_LINE);
      UNROLL for (u32 warp = 1u; warp < NORM_WARPS; ++warp) parts[n] +=
          NORM_SPACE(first + n * NORM_LINE + warp);
    }
    NORM_BARRIER();
    return MAKE_FLOAT4(parts[0], parts[1], parts[2], 0.0f);
  }
  UNROLL for (u32 n = 0u; n < NORM_SUMS; ++n) {
    NORM_SPACE(first + n * NORM_LINE + lane) = parts[n];
    for (u32 other = TO_U32(WG_X) + lane; other < NORM_LINE; other += TO_U32(WG_X))
      NORM_SPACE(first + n * NORM_LINE + other) = 0.0f;
  }
  NORM_BARRIER();
  if (TO_U32(WG_X) > NORM_FOLD) {
    if (lane < NORM_FOLD) {
      UNROLL for (u32 n = 0u; n < NORM_SUMS; ++n) {
        for (u32 other = lane + NORM_FOLD; other < TO_U32(WG_X); other += NORM_FOLD)
          parts[n] += NORM_SPACE(first + n * NORM_LINE + other);
        NORM_SPACE(first + n * NORM_LINE + lane) = parts[n];
      }
    }
    NORM_BARRIER();
  }
  UNROLL for (u32 n = 0u; n < NORM_SUMS; ++n) {
    const u32 vector = (first + n * NORM_LINE) / 4u;
    parts[n] = norm_sum((NORM_SPACE4(vector) + NORM_SPACE4(vector + 1u)) +
                        (NORM_SPACE4(vector + 2u) + NORM_SPACE4(vector + 3u)));
  }
  NORM_BARRIER();
  return MAKE_FLOAT4(parts[0], parts[1], parts[2], 0.0f);
}

// Has the call this, an NORM_… of its features?
#define NORM_HAS(feature) \
  ((TO_U32(FEATURES) & (feature)) != 0u && (ARGS(features) & (feature)) != 0u)

// An item reads and writes chunks of NORM_FOURS vectors of four elements, 16 bytes where ALIGNED
// says that they lie at multiples of that (lib/chunks). A line's items keep NORM_CHUNKS chunks
// each; what is beyond they read again, four elements at a time.
#if DTYPE == DTYPE_F32
#define NORM_FOURS 1u
#else
#define NORM_FOURS (ALIGNED != 0 ? 2u : 1u)
#endif
#define NORM_CHUNKS (VECTORS / NORM_FOURS)
#define NORM_CHUNK(u) ((TO_U32(u) * TO_U32(WG_X) + lane) * (4u * NORM_FOURS))
#define NORM_EACH_CHUNK(u) \
  UNROLL for (u32 u = 0u; u < NORM_CHUNKS; ++u) if (WHOLE != 0 || NORM_CHUNK(u) < end)
// The vectors of chunk u, and vector v of all of them.
#define NORM_FIRST(u) ((u)*NORM_FOURS)
#define NORM_LAST(u) ((u)*NORM_FOURS + NORM_FOURS - 1u)
#define NORM_FOUR(chunks, v) chunk_vector(chunks[(v) / NORM_FOURS], (v) % NORM_FOURS)
#define NORM_COLUMN(v) (NORM_CHUNK((v) / NORM_FOURS) + (v) % NORM_FOURS * 4u)
#define NORM_EACH_KEPT(v) \
  UNROLL for (u32 v = 0u; v < VECTORS; ++v) if (WHOLE != 0 || NORM_COLUMN(v) < end)
#define NORM_EACH_OTHER(column)                                                               \
  for (u32 column = (TO_U32(VECTORS) * TO_U32(WG_X) + lane) * 4u; WHOLE == 0 && column < end; \
       column += 4u * TO_U32(WG_X))

// s, of a row that is read again.
FUNCTION FLOAT4 norm_input(NORM_PARAMETERS INDEX x, INDEX residual, u32 left) {
  FLOAT4 value = LOAD_X(x, left);
  if (NORM_HAS(NORM_RESIDUAL)) value += LOAD_RESIDUAL(residual, left);
  return value;
}

FUNCTION FLOAT4 norm_weight(NORM_PARAMETERS u32 column, u32 left) {
  return LOAD_WEIGHT(TO_INDEX(ARGS(weight_offset)) + column, left);
}
FUNCTION FLOAT4 norm_weighted(NORM_PARAMETERS FLOAT4 value, u32 column, u32 left) {
  if (!NORM_HAS(NORM_WEIGHT)) return value;
  return value * norm_weight(NORM_ARGUMENTS column, left);
}

#endif  // TESSERA_OPERATIONS_NORMS_LINES_H
