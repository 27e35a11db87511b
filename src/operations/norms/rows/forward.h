// SPDX-License-Identifier: Apache-2.0
// The body of norms/rows/forward.cl and norms/rows/forward.comp. Text for OpenCL C and GLSL.

const u32 dim = ARGS(dim), rows = ARGS(rows);
const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y;
for (u32 block = GROUP_ID_X; block * TO_U32(WG_Y) < rows; block += GROUP_COUNT_X) {
  const u32 row = block * TO_U32(WG_Y) + line;
  const u32 end = row < rows ? dim : 0u;  // a line without a row has no columns
#include "operations/norms/statistics.h"

  NORM_EACH_CHUNK(u) {
    const u32 column = NORM_CHUNK(u), left = dim - column;
    const UINT4 weight = norm_weight_chunk(NORM_ARGUMENTS column, left);
    const UINT4 bias = norm_bias_chunk(NORM_ARGUMENTS column, left);
    UNROLL for (u32 i = 0u; i < NORM_FOURS; ++i) {
      const u32 v = NORM_FIRST(u) + i;
      kept[v] = norm_weigh(NORM_ARGUMENTS kept[v] * scale, weight, bias, i, column, left);
    }
    STORE_Y_CHUNK(kept[NORM_FIRST(u)], kept[NORM_LAST(u)], y + column, left);
  }
  NORM_EACH_OTHER(column) {
    const FLOAT4 value = norm_input(NORM_ARGUMENTS x + column, residual + column, dim - column);
    STORE_Y(norm_value(NORM_ARGUMENTS(value - mean) * scale, column, dim - column), y + column,
            dim - column);
  }
}
