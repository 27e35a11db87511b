// SPDX-License-Identifier: Apache-2.0
// The body of norms/rows/forward.cl and norms/rows/forward.comp. Text for OpenCL C and GLSL.

#define NORM_STORE_Y(n, column)                                                              \
  norm_store(NORM_ARGUMENTS norm_weighted(NORM_ARGUMENTS n, column, dim - (column)), column, \
             y + (column), dim - (column))

const u32 features = ARGS(features), dim = ARGS(dim), rows = ARGS(rows);
const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y;
const bool has_residual = (features & NORM_RESIDUAL) != 0u;
for (u32 block = GROUP_ID_X; block * TO_U32(WG_Y) < rows; block += GROUP_COUNT_X) {
  const u32 row = block * TO_U32(WG_Y) + line;
  const u32 end = row < rows ? dim : 0u;  // a line without a row has no columns
  const UINT3 place = norm_place(rows, ARGS(rows1), ARGS(rows2), row);
  const INDEX x = norm_row(ARGS(x), place);
  const INDEX residual = norm_row(ARGS(residual), place);
  const INDEX y = norm_row(ARGS(y), place);

  FLOAT4 kept[VECTORS];
  UNROLL for (u32 v = 0u; v < VECTORS; ++v) kept[v] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  NORM_EACH_KEPT(v) kept[v] = LOAD_X(x + NORM_COLUMN(v), dim - NORM_COLUMN(v));
  if (has_residual) {
    NORM_EACH_KEPT(v) kept[v] += LOAD_RESIDUAL(residual + NORM_COLUMN(v), dim - NORM_COLUMN(v));
  }
  if ((features & NORM_SUM) != 0u) {
    const INDEX sum = norm_row(ARGS(sum), place);
    NORM_EACH_KEPT(v) STORE_SUM(kept[v], sum + NORM_COLUMN(v), dim - NORM_COLUMN(v));
    NORM_EACH_OTHER(column)
    STORE_SUM(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column), sum + column,
              dim - column);
  }

  float mean = 0.0f;
  if (CENTERED != 0) {
    FLOAT4 part = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    UNROLL for (u32 v = 0u; v < VECTORS; ++v) part += kept[v];
    NORM_EACH_OTHER(column)
    part += norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    mean = norm_total(NORM_ARGUMENTS line, lane, MAKE_FLOAT4(norm_sum(part), 0.0f, 0.0f, 0.0f)).x *
           ARGS(mean_factor);
    NORM_EACH_KEPT(v) kept[v] = norm_part(kept[v] - mean, dim - NORM_COLUMN(v));
  }
  FLOAT4 squares = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  UNROLL for (u32 v = 0u; v < VECTORS; ++v) squares += kept[v] * kept[v];
  NORM_EACH_OTHER(column) {
    const FLOAT4 value =
        norm_part(norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean,
                  dim - column);
    squares += value * value;
  }
  const FLOAT4 part = MAKE_FLOAT4(norm_sum(squares), 0.0f, 0.0f, 0.0f);
  const float variance = norm_total(NORM_ARGUMENTS line, lane, part).x * ARGS(mean_factor);
  const float scale = RSQRT(variance + ARGS(epsilon));

  NORM_EACH_KEPT(v) NORM_STORE_Y(kept[v] * scale, NORM_COLUMN(v));
  NORM_EACH_OTHER(column) {
    const FLOAT4 value = norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    NORM_STORE_Y((value - mean) * scale, column);
  }
}
