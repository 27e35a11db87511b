// SPDX-License-Identifier: Apache-2.0
// What the kernels of the variant "rows" share. Text for OpenCL C and GLSL; norms/rows/operands.clh and
// norms/rows/operands.glsl say how each of them reads operands and meets its work-group.
#ifndef TESSERA_OPERATIONS_NORMS_ROWS_H
#define TESSERA_OPERATIONS_NORMS_ROWS_H

// The first element of row `row`.
FUNCTION INDEX norm_row(STRUCT(NormRows) at, u32 rows1, u32 rows2, u32 row) {
  const u32 inner = row % rows2, rest = row / rows2;
  return TO_INDEX(at.offset) + TO_INDEX(rest / rows1) * at.stride0 +
         TO_INDEX(rest % rows1) * at.stride1 + TO_INDEX(inner) * at.stride2;
}

// `value` where its row has that many elements left, 0 elsewhere.
FUNCTION FLOAT4 norm_part(FLOAT4 value, u32 left) {
  if (ALIGNED != 0) return value;
  return MAKE_FLOAT4(value.x, left > 1u ? value.y : 0.0f, left > 2u ? value.z : 0.0f,
                     left > 3u ? value.w : 0.0f);
}

FUNCTION float norm_sum(FLOAT4 v) { return (v.x + v.y) + (v.z + v.w); }

// The sum of `value` over the items of a line, the same in all of them. Lanes fold onto the first
// NORM_FOLD, whose sums everybody adds in one order.
#define NORM_FOLD 16u
FUNCTION FLOAT4 norm_total(NORM_PARAMETERS u32 line, u32 lane, FLOAT4 value) {
  const u32 first = line * TO_U32(WG_X), width = min(TO_U32(WG_X), NORM_FOLD);
  NORM_SPACE(first + lane) = value;
  NORM_BARRIER();
  if (TO_U32(WG_X) > NORM_FOLD) {
    if (lane < NORM_FOLD) {
      for (u32 other = lane + NORM_FOLD; other < TO_U32(WG_X); other += NORM_FOLD)
        value += NORM_SPACE(first + other);
      NORM_SPACE(first + lane) = value;
    }
    NORM_BARRIER();
  }
  FLOAT4 total = NORM_SPACE(first);
  for (u32 other = 1u; other < width; ++other) total += NORM_SPACE(first + other);
  NORM_BARRIER();
  return total;
}

// The columns of a line's item: those that it keeps, and those that it reads again.
#define NORM_COLUMN(v) ((TO_U32(v) * TO_U32(WG_X) + lane) * 4u)
#define NORM_EACH_KEPT(v) UNROLL for (u32 v = 0u; v < VECTORS; ++v) if (NORM_COLUMN(v) < end)
#define NORM_EACH_OTHER(column) \
  for (u32 column = NORM_COLUMN(VECTORS); column < end; column += 4u * TO_U32(WG_X))

// s, of a row that is read again.
FUNCTION FLOAT4 norm_input(NORM_PARAMETERS INDEX x, INDEX residual, u32 left) {
  FLOAT4 value = LOAD_X(x, left);
  if ((ARGS(features) & NORM_RESIDUAL) != 0u) value += LOAD_RESIDUAL(residual, left);
  return value;
}

FUNCTION FLOAT4 norm_weighted(NORM_PARAMETERS FLOAT4 value, u32 column, u32 left) {
  if ((ARGS(features) & NORM_WEIGHT) == 0u) return value;
  return value * LOAD_WEIGHT(TO_INDEX(ARGS(weight_offset)) + column, left);
}

#endif  // TESSERA_OPERATIONS_NORMS_ROWS_H
