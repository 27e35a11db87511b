// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/spread.cl and moe/rows/spread.comp: rows of experts from rows of tokens.
// Text for OpenCL C and GLSL.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim);
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const i32 choice = MAP(row);
  const u32 n = choice == MOE_NOWHERE ? 0u : TO_U32(choice);
  float weight = 1.0f;
  if (choice != MOE_NOWHERE && ARGS(weighted) != 0u) weight = WEIGHT(n);
  for (u32 i = lane * 4u; i < dim; i += TO_U32(LANES) * 4u) {
    FLOAT4 x = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    if (choice != MOE_NOWHERE) x = weight * LOAD_TOKEN(n / ARGS(top_k), i);
    STORE_ROW(x, row, i);
  }
}
