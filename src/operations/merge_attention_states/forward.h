// SPDX-License-Identifier: Apache-2.0
// The body of attention_states/merge.cl and attention_states/merge.comp. Text for OpenCL C and
// GLSL. LOAD_PART(p, i) is four elements of a part's row from i on.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), heads = ARGS(heads);
const u32 all_parts = ARGS(parts) + ARGS(has_other);
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const u32 head = row % heads, n = row / heads;
  STATE_SUMS(largest, sum, factor)
  if (lane == 0u && ARGS(has_merged) != 0u) {
    STORE_MERGED(sum == 0.0f ? STATE_NOTHING : largest + log(sum));
  }
  // The factor of a row with NaN is NaN, and so would be the weight of a part that is not there.
  const float first = STATE_WEIGHT(0u), second = all_parts > 1u ? STATE_WEIGHT(1u) : 0.0f;
  const FLOAT4 nothing = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  for (u32 i = lane * 8u; i < dim; i += TO_U32(LANES) * 8u) {
    const bool is_whole = i + 4u < dim;
    FLOAT4 low = nothing, high = nothing, next_low = nothing, next_high = nothing;
    if (first != 0.0f) low = LOAD_PART(0u, i);
    if (first != 0.0f && is_whole) high = LOAD_PART(0u, i + 4u);
    if (second != 0.0f) next_low = LOAD_PART(1u, i);
    if (second != 0.0f && is_whole) next_high = LOAD_PART(1u, i + 4u);
    low = first * low + second * next_low;
    high = first * high + second * next_high;
    for (u32 p = 2u; p < all_parts; ++p) {
      const float weight = STATE_WEIGHT(p);
      if (weight == 0.0f) continue;
      low += weight * LOAD_PART(p, i);
      if (is_whole) high += weight * LOAD_PART(p, i + 4u);
    }
    STORE_OUTPUT(low, i);
    if (is_whole) STORE_OUTPUT(high, i + 4u);
  }
}
