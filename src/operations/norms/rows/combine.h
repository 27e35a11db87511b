// SPDX-License-Identifier: Apache-2.0
// The body of norms/rows/combine.cl and norms/rows/combine.comp. Text for OpenCL C and GLSL.

const u32 lane = LOCAL_ID_X, line = LOCAL_ID_Y, columns = ARGS(columns);
const u32 column = (GROUP_ID_X * TO_U32(WG_X) + lane) * 4u;
for (u32 row = GROUP_ID_Y; UNIFORM(row < ARGS(rows)); row += GROUP_COUNT_Y) {
  const u32 outer = row / ARGS(inner), inner = row % ARGS(inner);
  const INDEX first = TO_INDEX(outer) * ARGS(outer_rows) + TO_INDEX(inner) * ARGS(inner_rows);
  FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  if (column < columns) {
    for (u32 n = line; n < ARGS(count); n += TO_U32(WG_Y)) {
      const INDEX term = first + TO_INDEX(n / ARGS(repeats)) * ARGS(step0) +
                         TO_INDEX(n % ARGS(repeats)) * ARGS(step1);
      sum += LOAD_SCRATCH(ARGS(from) + term * columns + column);
    }
  }
  NORM_SPACE4(line * TO_U32(WG_X) + lane) = sum;
  NORM_BARRIER();
  if (line == 0u && column < ARGS(dim)) {
    for (u32 other = 1u; other < TO_U32(WG_Y); ++other)
      sum += NORM_SPACE4(other * TO_U32(WG_X) + lane);
    STORE_RESULT(sum,
                 TO_INDEX(ARGS(offset)) + TO_INDEX(outer) * ARGS(stride0) +
                     TO_INDEX(inner) * ARGS(stride1) + column,
                 ARGS(dim) - column);
  }
  NORM_BARRIER();
}
