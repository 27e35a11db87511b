// SPDX-License-Identifier: Apache-2.0
// The body of norms/quantised/forward.cl and norms/quantised/forward.comp. Text for OpenCL C and
// GLSL.

const u32 dim = ARGS(dim), rows = ARGS(rows);
const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y;
for (u32 block = GROUP_ID_X; block * TO_U32(WG_Y) < rows; block += GROUP_COUNT_X) {
  const u32 row = block * TO_U32(WG_Y) + line;
  const u32 end = row < rows ? dim : 0u;  // a line without a row has no columns
#include "operations/norms/statistics.h"

  FLOAT4 most = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  NORM_EACH_CHUNK(u) {
    const u32 column = NORM_CHUNK(u), left = dim - column;
    const UINT4 weight = norm_weight_chunk(NORM_ARGUMENTS column, left);
    const UINT4 bias = norm_bias_chunk(NORM_ARGUMENTS column, left);
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) {
      const u32 v = NORM_FIRST(u) + i;
      kept[v] = norm_weigh(NORM_ARGUMENTS kept[v] * scale, weight, bias, i, column, left);
      most = norm_larger(most, kept[v]);
    }
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 value = norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    most = norm_larger(
        most, norm_part(norm_value(NORM_ARGUMENTS(value - mean) * scale, column, dim - column),
                        dim - column));
  }
  // 2^-100, so that a row of zeros has a scale, too.
  const float largest =
      max(norm_largest(NORM_ARGUMENTS line, lane, max(max(most.x, most.y), max(most.z, most.w))),
          7.8886091e-31f);
  if (lane == 0u && row < rows)
    STORE_SCALE(largest / QUANTISED_ARGS(largest), norm_row(QUANTISED_ARGS(scale), place));
  const float inverse = QUANTISED_ARGS(largest) / largest;

  const u32 type = CODES != 0 ? TO_U32(CODES) : QUANTISED_ARGS(type);
  NORM_EACH_CHUNK(u)
  STORE_CODES_CHUNK(kept[NORM_FIRST(u)] * inverse, kept[NORM_LAST(u)] * inverse, type,
                    y + NORM_CHUNK(u), dim - NORM_CHUNK(u));
  NORM_EACH_OTHER(column) {
    const FLOAT4 value = norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    STORE_CODES(norm_value(NORM_ARGUMENTS(value - mean) * scale, column, dim - column) * inverse,
                type, y + column, dim - column);
  }
}
