// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/quantise.cl and kv_cache/rows/quantise.comp. Text for OpenCL C and
// GLSL. A chunk is eight elements, x0 to x7, or two where ALIGNED is 0: LOAD_CHUNK makes them, 0
// beyond the row, STORE_CHUNK takes their codes. LARGEST_LINE(x) is of the LANES items of a row.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), type = ARGS(type);
const u32 width = ALIGNED != 0 ? 8u : 2u, rows = ARGS(rows);
const float largest = ARGS(largest);
for (u32 first = GROUP_ID * lines; first < rows; first += GROUP_COUNT * lines) {
  const u32 row = first + line;
  const u32 a = row % ARGS(heads), n = row / ARGS(heads), b = 0u;
  i32 target = row < rows ? TO_INT(n) : CACHE_NOWHERE;
  if (row < rows && ARGS(to_list) != CACHE_NO_LIST) target = LIST(ARGS(to_list) + n);
  const bool counts = target != CACHE_NOWHERE;
  const u32 slot = counts ? TO_U32(target) : 0u;
  const INDEX from = ROW_AT(ARGS(floats), n), to = ROW_AT(ARGS(codes), slot);
  const INDEX at = ROW_AT(ARGS(scale), slot);

  float scale = 1.0f;
  if (TO_U32(MODE) == TO_U32(CACHE_SCALE_GIVEN)) {
    if (counts) scale = SCALE(at);
  } else {
    float peak = 0.0f;
    if (counts) {
      for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width) {
        LOAD_CHUNK(from + i, dim - i);
        PEAK_OF_CHUNK(peak);
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
    for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width) {
      LOAD_CHUNK(from + i, dim - i);
      STORE_CHUNK(to + i, dim - i);
    }
  }
}
