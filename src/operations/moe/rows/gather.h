// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/gather.cl and moe/rows/gather.comp: rows of tokens as sums of rows of
// experts. Text for OpenCL C and GLSL.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim);
for (u32 token = GROUP_ID * lines + line; token < ARGS(tokens); token += GROUP_COUNT * lines) {
  for (u32 i = lane * 4u; i < dim; i += TO_U32(LANES) * 4u) {
    FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    for (u32 r = 0u; r < ARGS(top_k); ++r) {
      const u32 n = token * ARGS(top_k) + r;
      MOE_PLACE(row, n, i == 0u)
      if (row != MOE_NOWHERE) {
        const float weight = ARGS(weighted) != 0u ? WEIGHT(n) : 1.0f;
        if (weight != 0.0f) sum += weight * LOAD_ROW(TO_U32(row), i);
      }
    }
    STORE_TOKEN(sum, token, i);
  }
}
