// SPDX-License-Identifier: Apache-2.0
// From a row of x and its residual to what normalises it: `kept` is (s - mean) of what the line's
// items keep, (s - mean) * scale is normal. Text of a body in OpenCL C and GLSL, for a line's `row`
// of `rows` and its `end`, 0 where there is no such row.
const UINT3 place = norm_place(rows, ARGS(rows1), ARGS(rows2), row);
const INDEX x = norm_row(ARGS(x), place);
const INDEX residual = norm_row(ARGS(residual), place);
const INDEX y = norm_row(ARGS(y), place);

UINT4 chunks[VECTORS];
FLOAT4 kept[VECTORS];
UNROLL for (u32 v = 0u; v < VECTORS; ++v) kept[v] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
NORM_EACH_CHUNK(u) chunks[u] = LOAD_X_CHUNK(x + NORM_CHUNK(u), dim - NORM_CHUNK(u));
NORM_EACH_KEPT(v) kept[v] = NORM_FOUR(chunks, v);
if (NORM_HAS(NORM_RESIDUAL)) {
  NORM_EACH_CHUNK(u)
  chunks[u] = LOAD_RESIDUAL_CHUNK(residual + NORM_CHUNK(u), dim - NORM_CHUNK(u));
  NORM_EACH_KEPT(v) kept[v] += NORM_FOUR(chunks, v);
}
if (NORM_HAS(NORM_SUM)) {
  const INDEX sum = norm_row(ARGS(sum), place);
  NORM_EACH_CHUNK(u)
  STORE_SUM_CHUNK(kept[NORM_FIRST(u)], kept[NORM_LAST(u)], sum + NORM_CHUNK(u),
                  dim - NORM_CHUNK(u));
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
  const FLOAT4 value = norm_part(
      norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column) - mean, dim - column);
  squares += value * value;
}
const FLOAT4 part = MAKE_FLOAT4(norm_sum(squares), 0.0f, 0.0f, 0.0f);
const float variance = norm_total(NORM_ARGUMENTS line, lane, part).x * ARGS(mean_factor);
const float scale = RSQRT(variance + ARGS(epsilon));
