// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/gather.cl and moe/rows/gather.comp: rows of tokens as sums of rows of
// experts. Text for OpenCL C and GLSL. Those of the first choices are asked for together.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), top_k = ARGS(top_k);
for (u32 token = GROUP_ID * lines + line; token < ARGS(tokens); token += GROUP_COUNT * lines) {
  i32 held[MOE_HELD];
  float held_weights[MOE_HELD];
  MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) {
    held[r] = MOE_NOWHERE;
    held_weights[r] = 0.0f;
    if (r < top_k) {
      const u32 n = token * top_k + r;
      MOE_PLACE(row, n, lane == 0u)
      if (row != MOE_NOWHERE) held_weights[r] = ARGS(weighted) != 0u ? WEIGHT(n) : 1.0f;
      if (held_weights[r] != 0.0f) held[r] = row;
    }
  }
  for (u32 i = lane * VECTOR; i < dim; i += TO_U32(LANES) * VECTOR) {
    STORED x[MOE_HELD];
    MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) {
      x[r] = STORED_ZEROS;
      if (held[r] != MOE_NOWHERE) x[r] = LOAD_ROW(TO_U32(held[r]), i);
    }
    VALUES sum = ZEROS;
    MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) sum += held_weights[r] * FLOATS(x[r]);
    for (u32 r = MOE_HELD; r < top_k; ++r) {
      const u32 n = token * top_k + r;
      MOE_PLACE(row, n, i == 0u)
      if (row != MOE_NOWHERE) {
        const float weight = ARGS(weighted) != 0u ? WEIGHT(n) : 1.0f;
        if (weight != 0.0f) sum += weight * FLOATS(LOAD_ROW(TO_U32(row), i));
      }
    }
    STORE_TOKEN(sum, token, i);
  }
}
