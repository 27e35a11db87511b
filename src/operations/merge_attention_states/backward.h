// SPDX-License-Identifier: Apache-2.0
// The body of attention_states/backward.cl and attention_states/backward.comp. Text for OpenCL C
// and GLSL. With d(p) = grad_output . outputs(p): the gradient of outputs(p) is weight(p)
// grad_output, that of its log-sum-exp weight(p) (d(p) - sum over q of weight(q) d(q) +
// grad_merged). SUM_LINE(x) is of the LANES items of a row.

#define DOT_OF_PART(result, p, weight)                        \
  float result = 0.0f;                                        \
  if (counts && (weight) != 0.0f) {                           \
    for (u32 i = lane * 4u; i < dim; i += TO_U32(LANES) * 4u) \
      result += dot(LOAD_GRADIENT(i), LOAD_PART(p, i));       \
  }                                                           \
  result = SUM_LINE(result);

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), heads = ARGS(heads);
const u32 all_parts = ARGS(parts) + ARGS(has_other), rows = ARGS(rows);
for (u32 first = GROUP_ID * lines; first < rows; first += GROUP_COUNT * lines) {
  const bool counts = first + line < rows;
  const u32 row = counts ? first + line : rows - 1u;
  const u32 head = row % heads, n = row / heads;
  STATE_SUMS(largest, sum, factor)
  float mean = 0.0f;
  for (u32 p = 0u; p < all_parts; ++p) {
    const float weight = STATE_WEIGHT(p);
    DOT_OF_PART(product, p, weight)
    mean += weight * product;
  }
  const float merged = ARGS(has_merged) != 0u ? GRAD_MERGED : 0.0f;
  for (u32 p = 0u; p < all_parts; ++p) {
    const float weight = STATE_WEIGHT(p);
    DOT_OF_PART(product, p, weight)
    const bool is_part = weight != 0.0f;
    const float slope = is_part ? weight * (product - mean + merged) : 0.0f;
    if (counts && lane == 0u) {
      STORE_GRAD_SUM(slope, p)
    }
    if (counts) {
      for (u32 i = lane * 4u; i < dim; i += TO_U32(LANES) * 4u) {
        FLOAT4 gradient = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
        if (is_part) gradient = weight * LOAD_GRADIENT(i);
        STORE_GRAD_PART(gradient, p, i);
      }
    }
  }
}
