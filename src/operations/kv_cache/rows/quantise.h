// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/quantise.cl and kv_cache/rows/quantise.comp. Text for OpenCL C and
// GLSL. A chunk is eight elements, or two where ALIGNED is 0: CACHE_LOAD makes them, 0 beyond the
// row, CACHE_STORE takes their codes. LARGEST_LINE(x) is of the LANES items of a row.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim);
const u32 width = ALIGNED != 0 ? 8u : 2u, rows = ARGS(rows);
const float largest = ARGS(largest);
for (u32 first = GROUP_ID * lines; first < rows; first += GROUP_COUNT * lines) {
  const u32 row = first + line;
  const u32 n = row / ARGS(heads), a = row - n * ARGS(heads);
  i32 target = row < rows ? TO_INT(n) : CACHE_NOWHERE;
  if (row < rows && LISTED != 0) target = LIST(ARGS(to_list) + n);
  const bool counts = target != CACHE_NOWHERE;
  const u32 place = counts ? TO_U32(target) : 0u;
  const u32 page = place / ARGS(codes.split), slot = place - page * ARGS(codes.split);
  // Listed ones are rows of tokens.
  const INDEX from = LISTED != 0 ? cache_row(ARGS(floats), n, 0u, a)
                                 : cache_row(ARGS(floats), page, slot, a);
  const INDEX to = cache_row(ARGS(codes), page, slot, a);
  const INDEX at = cache_row(ARGS(scale), page, slot, a);

  float scale = 1.0f;
  if (TO_U32(MODE) == TO_U32(CACHE_SCALE_GIVEN)) {
    if (counts) scale = SCALE(at);
  } else {
    float peak = 0.0f;
    if (counts) {
      for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width) {
        CACHE_LOAD(from + i, dim - i);
        CACHE_PEAK(peak);
      }
    }
    peak = LARGEST_LINE(peak);
    scale = cache_scale(peak, largest);
    if (counts && lane == 0u) {
      if (TO_U32(MODE) == TO_U32(CACHE_SCALE_PEAK)) {
        STORE_PEAK(peak, row);
      } else {
        STORE_SCALE(scale, at);
      }
    }
  }
  if (counts && TO_U32(MODE) != TO_U32(CACHE_SCALE_PEAK)) {
    const float inverse = cache_inverse(scale);
    for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width) {
      CACHE_LOAD(from + i, dim - i);
      CACHE_STORE(to + i, dim - i);
    }
  }
}
