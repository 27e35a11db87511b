// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/spread.cl and moe/rows/spread.comp: rows of experts from rows of tokens.
// Text for OpenCL C and GLSL. Tokens in order, each read once for all of its rows; then the rows
// that no token has.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), top_k = ARGS(top_k);
for (u32 token = GROUP_ID * lines + line; token < ARGS(tokens); token += GROUP_COUNT * lines) {
  for (u32 base = 0u; base < top_k; base += MOE_HELD) {
    i32 held[MOE_HELD];
    float held_weights[MOE_HELD];
    MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) {
      held[r] = MOE_NOWHERE;
      held_weights[r] = 1.0f;
      if (base + r < top_k) {
        const u32 n = token * top_k + base + r;
        MOE_PLACE(row, n, false)
        if (row != MOE_NOWHERE && MAP(row) == TO_INT(n)) {
          held[r] = row;
          if (ARGS(weighted) != 0u) held_weights[r] = WEIGHT(n);
        }
      }
    }
    for (u32 i = lane * VECTOR; i < dim; i += TO_U32(LANES) * VECTOR) {
      const STORED x = LOAD_TOKEN(token, i);
      if (ARGS(weighted) == 0u) {
        MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) {
          if (held[r] != MOE_NOWHERE) COPY_TO_ROW(x, TO_U32(held[r]), i);
        }
      } else {
        MOE_UNROLL for (u32 r = 0u; r < MOE_HELD; ++r) {
          if (held[r] != MOE_NOWHERE) STORE_ROW(held_weights[r] * FLOATS(x), TO_U32(held[r]), i);
        }
      }
    }
  }
}
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const i32 choice = MAP(row);
  if (choice == MOE_NOWHERE) {
    // No constant, of which SPIR-V has none in 16 bits.
    const float nothing = TO_FLOAT(choice - MOE_NOWHERE);
    for (u32 i = lane * VECTOR; i < dim; i += TO_U32(LANES) * VECTOR)
      STORE_ROW(ZEROS + nothing, row, i);
  }
}
