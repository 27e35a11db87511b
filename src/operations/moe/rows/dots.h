// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/dots.cl and moe/rows/dots.comp: gradients of weights. Text for OpenCL C and
// GLSL; SUM_LINE(x) is of the LANES items of a choice.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim);
const u32 choices = ARGS(tokens) * ARGS(top_k);
for (u32 first = GROUP_ID * lines; first < choices; first += GROUP_COUNT * lines) {
  const bool counts = first + line < choices;
  const u32 n = counts ? first + line : choices - 1u;
  MOE_PLACE(row, n, false)
  float sum = 0.0f;
  if (counts && row != MOE_NOWHERE) {
    for (u32 i = lane * 4u; i < dim; i += TO_U32(LANES) * 4u)
      sum += dot(LOAD_TOKEN(n / ARGS(top_k), i), LOAD_ROW(TO_U32(row), i));
  }
  sum = SUM_LINE(sum);
  if (counts && lane == 0u) STORE_GRAD_WEIGHT(sum, n);
}
