// SPDX-License-Identifier: Apache-2.0
// The body of norms/rows/backward.cl and norms/rows/backward.comp. Text for OpenCL C and GLSL. With
// c = s - mean and r = 1 / sqrt(mean(c^2) + epsilon), mean(g n) = r mean(g c).

// Asks for the rows of a block.
#define NORM_ASK_FOR(block)                                                                   \
  {                                                                                           \
    const u32 row = (block)*TO_U32(WG_Y) + line, end = row < rows ? dim : 0u;                 \
    const UINT3 place = norm_place(rows, ARGS(rows1), ARGS(rows2), row);                      \
    const INDEX x = norm_row(ARGS(x), place), dy = norm_row(ARGS(dy), place);                 \
    NORM_EACH_CHUNK(u) ahead_x[u] = LOAD_X_CHUNK(x + NORM_CHUNK(u), dim - NORM_CHUNK(u));     \
    NORM_EACH_CHUNK(u) ahead_dy[u] = LOAD_DY_CHUNK(dy + NORM_CHUNK(u), dim - NORM_CHUNK(u));  \
    if (NORM_HAS(NORM_RESIDUAL)) {                                                            \
      const INDEX residual = norm_row(ARGS(residual), place);                                 \
      NORM_EACH_CHUNK(u)                                                                      \
      ahead_residual[u] = LOAD_RESIDUAL_CHUNK(residual + NORM_CHUNK(u), dim - NORM_CHUNK(u)); \
    }                                                                                         \
  }

#define NORM_PART(c, g) MAKE_FLOAT4(dot(c, c), dot(g, c), CENTERED != 0 ? norm_sum(g) : 0.0f, 0.0f)

const u32 dim = ARGS(dim), rows = ARGS(rows);
const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y;
const bool sums_weight = NORM_HAS(NORM_GRAD_WEIGHT), sums_bias = NORM_HAS(NORM_GRAD_BIAS);
const u32 blocks = (rows + TO_U32(WG_Y) - 1u) / TO_U32(WG_Y);
const u32 blocks_each = (blocks + GROUP_COUNT_X - 1u) / GROUP_COUNT_X;
const u32 first = GROUP_ID_X * blocks_each, last = min(first + blocks_each, blocks);
const INDEX weight_sums = TO_INDEX(GROUP_ID_X * TO_U32(WG_Y) + line) * ARGS(columns);
const INDEX bias_sums = weight_sums + TO_INDEX(ARGS(shares)) * ARGS(columns);
const FLOAT4 zero = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);

FLOAT4 weights[VECTORS], weight_sum[VECTORS], bias_sum[VECTORS];
UNROLL for (u32 v = 0u; v < VECTORS; ++v) weights[v] = weight_sum[v] = bias_sum[v] = zero;
if (NORM_HAS(NORM_WEIGHT)) {
  const u32 end = dim;
  NORM_EACH_KEPT(v)
  weights[v] = norm_weight(NORM_ARGUMENTS NORM_COLUMN(v), dim - NORM_COLUMN(v));
}
{
  const u32 end = ARGS(columns);
  NORM_EACH_OTHER(column) {
    if (sums_weight) STORE_SCRATCH(zero, weight_sums + column);
    if (sums_bias) STORE_SCRATCH(zero, bias_sums + column);
  }
}
UINT4 ahead_x[VECTORS], ahead_dy[VECTORS], ahead_residual[VECTORS];
if (AHEAD != 0) NORM_ASK_FOR(first)
for (u32 block = first; UNIFORM(block < last); ++block) {
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
  if (AHEAD == 0) NORM_ASK_FOR(block)
  NORM_EACH_KEPT(v) {
    kept[v] = NORM_FOUR(ahead_x, v);
    gradient[v] = NORM_FOUR(ahead_dy, v);
  }
  if (NORM_HAS(NORM_RESIDUAL)) {
    NORM_EACH_KEPT(v) kept[v] += NORM_FOUR(ahead_residual, v);
  }
  if (AHEAD != 0 && block + 1u < last) NORM_ASK_FOR(block + 1u)

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
  FLOAT4 part = zero;  // sums of c^2, g c and, where a mean was taken off, g
  NORM_EACH_KEPT(v) {
    const FLOAT4 g = NORM_HAS(NORM_WEIGHT) ? gradient[v] * weights[v] : gradient[v];
    part += NORM_PART(kept[v], g);
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 c =
        norm_part(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean,
                  dim - column);
    const FLOAT4 g =
        norm_weighted(NORM_ARGUMENTS LOAD_DY(dy + column, dim - column), column, dim - column);
    part += NORM_PART(c, g);
  }
  const FLOAT4 total = norm_total(NORM_ARGUMENTS line, lane, part) * ARGS(mean_factor);
  const float scale = RSQRT(total.x + ARGS(epsilon));
  const float along = total.y * scale, level = CENTERED != 0 ? total.z : 0.0f;

  NORM_EACH_KEPT(v) {
    const FLOAT4 n = kept[v] * scale;
    const FLOAT4 g = NORM_HAS(NORM_WEIGHT) ? gradient[v] * weights[v] : gradient[v];
    if (sums_weight) weight_sum[v] += gradient[v] * n;
    if (sums_bias) bias_sum[v] += gradient[v];
    kept[v] = (g - level - n * along) * scale;
  }
  NORM_EACH_CHUNK(u) {
    const u32 column = NORM_CHUNK(u);
    norm_store_chunk(NORM_ARGUMENTS kept[NORM_FIRST(u)], kept[NORM_LAST(u)], dsum + column,
                     dx + column, dresidual + column, floats + column, dim - column);
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 n =
        norm_part(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean,
                  dim - column) *
        scale;
    const FLOAT4 before = LOAD_DY(dy + column, dim - column);
    const FLOAT4 g = norm_weighted(NORM_ARGUMENTS before, column, dim - column);
    norm_store(NORM_ARGUMENTS(g - level - n * along) * scale, dsum + column, dx + column,
               dresidual + column, floats + column, dim - column);
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
