// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/scan/scan.cl and scan.comp. Text for OpenCL C and GLSL. LOAD_BOUNDARY(i)
// is what common/boundaries has left.

const u32 columns = ARGS(heads) * ARGS(dim);
const u32 column = GROUP_ID_X * TO_U32(WG_X) + LOCAL_ID_X;
const u32 tokens = ARGS(tokens), ranges = ARGS(batches) * ARGS(units);
if (column < columns) {
  const u32 head = column / ARGS(dim), feature = column % ARGS(dim);
  for (u32 range = GROUP_ID_Y; range < ranges; range += GROUP_COUNT_Y) {
    const u32 unit = range % ARGS(units), batch = range / ARGS(units);
    const u32 in_column = ARGS(in_offset) + batch * ARGS(in_batch) + head * ARGS(in_head) +
                          feature * ARGS(in_feature);
    const u32 out_column = ARGS(out_offset) + batch * ARGS(out_batch) + head * ARGS(out_head) +
                           feature * ARGS(out_feature);
    u32 begin = unit * ARGS(chunk), end = min(begin + ARGS(chunk), tokens);
    if (ARGS(boundaries) != 0u) {
      const bool is_last = unit + 2u >= ARGS(boundaries), is_some = unit + 1u < ARGS(boundaries);
      begin = is_some ? TO_U32(LOAD_BOUNDARY(unit)) : tokens;
      end = is_some ? TO_U32(LOAD_BOUNDARY(unit + 1u)) : tokens;
      // Tokens of no sequence: 0 times the scale, which no compiler knows to be finite.
      const u32 before = unit == 0u ? begin : 0u;
      const u32 behind = is_last ? end : tokens;
      for (u32 token = 0u; token < before; ++token)
        STORE(0.0f * ARGS(scale), out_column + token * ARGS(out_token));
      for (u32 token = behind; token < tokens; ++token)
        STORE(0.0f * ARGS(scale), out_column + token * ARGS(out_token));
    }
    float sum = 0.0f;
    for (u32 i = 0u; i < end - begin; ++i) {
      const u32 step = ARGS(reverse) != 0u ? end - begin - 1u - i : i, token = begin + step;
      // The first of a chunk, from the side where sums begin.
      const bool anew =
          ARGS(reverse) != 0u ? (step + 1u) % ARGS(chunk) == 0u : step % ARGS(chunk) == 0u;
      const float x = LOAD(in_column + token * ARGS(in_token));
      sum = anew ? x : sum + x;
      STORE(sum * ARGS(scale), out_column + token * ARGS(out_token));
    }
  }
}
