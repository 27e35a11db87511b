// SPDX-License-Identifier: Apache-2.0
// The body of norms/rows/backward.cl and norms/rows/backward.comp. Text for OpenCL C and GLSL. With
// c = s - mean and r = 1 / sqrt(mean(c^2) + epsilon), mean(g n) = r mean(g c).

// The gradient of s at `column`, on to where it is wanted.
#define NORM_STORE_GRADIENT(value, column, left)                                                  \
  norm_store_gradient(NORM_ARGUMENTS value, dsum + (column), dx + (column), dresidual + (column), \
                      floats + (column), left)

const u32 features = ARGS(features), dim = ARGS(dim), rows = ARGS(rows);
const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y;
const bool has_residual = (features & NORM_RESIDUAL) != 0u;
const bool sums_weight = (features & NORM_GRAD_WEIGHT) != 0u;
const bool sums_bias = (features & NORM_GRAD_BIAS) != 0u;
const u32 blocks = (rows + TO_U32(WG_Y) - 1u) / TO_U32(WG_Y);
const u32 blocks_each = (blocks + GROUP_COUNT_X - 1u) / GROUP_COUNT_X;
const u32 first = GROUP_ID_X * blocks_each, last = min(first + blocks_each, blocks);
const INDEX weight_sums = TO_INDEX(GROUP_ID_X * TO_U32(WG_Y) + line) * ARGS(columns);
const INDEX bias_sums = weight_sums + TO_INDEX(ARGS(shares)) * ARGS(columns);
const FLOAT4 zero = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);

FLOAT4 weight_sum[VECTORS], bias_sum[VECTORS];
UNROLL for (u32 v = 0u; v < VECTORS; ++v) weight_sum[v] = bias_sum[v] = zero;
{
  const u32 end = ARGS(columns);
  NORM_EACH_OTHER(column) {
    if (sums_weight) STORE_SCRATCH(zero, weight_sums + column);
    if (sums_bias) STORE_SCRATCH(zero, bias_sums + column);
  }
}
for (u32 block = first; block < last; ++block) {
  const u32 row = block * TO_U32(WG_Y) + line;
  const u32 end = row < rows ? dim : 0u;  // a line without a row has no columns
  const UINT3 place = norm_place(rows, ARGS(rows1), ARGS(rows2), row);
  const INDEX x = norm_row(ARGS(x), place);
  const INDEX residual = norm_row(ARGS(residual), place);
  const INDEX dy = norm_row(ARGS(dy), place);
  const INDEX dsum = norm_row(ARGS(dsum), place);
  const INDEX dx = norm_row(ARGS(dx), place);
  const INDEX dresidual = norm_row(ARGS(dresidual), place);
  const INDEX floats = TO_INDEX(ARGS(kept)) + TO_INDEX(row) * ARGS(columns);

  FLOAT4 kept[VECTORS], gradient[VECTORS];
  UNROLL for (u32 v = 0u; v < VECTORS; ++v) kept[v] = gradient[v] = zero;
  NORM_EACH_KEPT(v) kept[v] = LOAD_X(x + NORM_COLUMN(v), dim - NORM_COLUMN(v));
  NORM_EACH_KEPT(v) gradient[v] = LOAD_DY(dy + NORM_COLUMN(v), dim - NORM_COLUMN(v));
  if (has_residual) {
    NORM_EACH_KEPT(v) kept[v] += LOAD_RESIDUAL(residual + NORM_COLUMN(v), dim - NORM_COLUMN(v));
  }

  float mean = 0.0f;
  if (CENTERED != 0) {
    FLOAT4 part = zero;
    UNROLL for (u32 v = 0u; v < VECTORS; ++v) part += kept[v];
    NORM_EACH_OTHER(column)
    part += norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    mean = norm_total(NORM_ARGUMENTS line, lane, MAKE_FLOAT4(norm_sum(part), 0.0f, 0.0f, 0.0f)).x *
           ARGS(mean_factor);
    NORM_EACH_KEPT(v) kept[v] = norm_part(kept[v] - mean, dim - NORM_COLUMN(v));
  }
  FLOAT4 part = zero;  // sums of c^2, g, g c
  NORM_EACH_KEPT(v) {
    const FLOAT4 g =
        norm_weighted(NORM_ARGUMENTS gradient[v], NORM_COLUMN(v), dim - NORM_COLUMN(v));
    part += MAKE_FLOAT4(dot(kept[v], kept[v]), norm_sum(g), dot(g, kept[v]), 0.0f);
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 c =
        norm_part(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean,
                  dim - column);
    const FLOAT4 g =
        norm_weighted(NORM_ARGUMENTS LOAD_DY(dy + column, dim - column), column, dim - column);
    part += MAKE_FLOAT4(dot(c, c), norm_sum(g), dot(g, c), 0.0f);
  }
  const FLOAT4 total = norm_total(NORM_ARGUMENTS line, lane, part) * ARGS(mean_factor);
  const float scale = RSQRT(total.x + ARGS(epsilon));
  const float along = total.z * scale, level = CENTERED != 0 ? total.y : 0.0f;

  NORM_EACH_KEPT(v) {
    const FLOAT4 n = kept[v] * scale;
    const FLOAT4 g =
        norm_weighted(NORM_ARGUMENTS gradient[v], NORM_COLUMN(v), dim - NORM_COLUMN(v));
    NORM_STORE_GRADIENT((g - level - n * along) * scale, NORM_COLUMN(v), dim - NORM_COLUMN(v));
    weight_sum[v] += gradient[v] * n;
    bias_sum[v] += gradient[v];
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 n =
        norm_part(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean,
                  dim - column) *
        scale;
    const FLOAT4 before = LOAD_DY(dy + column, dim - column);
    const FLOAT4 g = norm_weighted(NORM_ARGUMENTS before, column, dim - column);
    NORM_STORE_GRADIENT((g - level - n * along) * scale, column, dim - column);
    if (sums_weight) {
      STORE_SCRATCH(LOAD_SCRATCH(weight_sums + column) + before * n, weight_sums + column);
    }
    if (sums_bias) STORE_SCRATCH(LOAD_SCRATCH(bias_sums + column) + before, bias_sums + column);
  }
}
{
  const u32 end = dim;
  NORM_EACH_KEPT(v) {
    if (sums_weight) STORE_SCRATCH(weight_sum[v], weight_sums + NORM_COLUMN(v));
    if (sums_bias) STORE_SCRATCH(bias_sum[v], bias_sums + NORM_COLUMN(v));
  }
}
