// SPDX-License-Identifier: Apache-2.0
// The body of the kernels "quantise" of kv_cache. Text for OpenCL C and GLSL. A chunk is
// CACHE_WIDTH elements: CACHE_LOAD makes one, 0 beyond the row, CACHE_PEAK takes its magnitudes
// into peaks, and CACHE_STORE its codes, after CACHE_DIVIDE_BY(scale). LARGEST_LINE(x) is of the
// items of a row.

const float largest = ARGS(largest);
for (u32 first = CACHE_FIRST; first < CACHE_END; first += CACHE_STEP) {
  const u32 row = first + CACHE_LINE;
  // Listed ones are rows (token, head) and go to slots, others lie as rows of their pool do.
  const u32 outer = row / (LISTED != 0 ? ARGS(heads) : ARGS(codes.split));
  const u32 inner = row - outer * (LISTED != 0 ? ARGS(heads) : ARGS(codes.split));
  i32 target = row < ARGS(rows) ? 0 : CACHE_NOWHERE;
  if (LISTED != 0 && row < ARGS(rows)) target = LIST(ARGS(to_list) + outer);
  const bool counts = target != CACHE_NOWHERE;
  const u32 place = counts ? TO_U32(target) : 0u;
  const u32 page = LISTED != 0 ? place / ARGS(codes.split) : outer / ARGS(heads);
  const u32 slot = LISTED != 0 ? place - page * ARGS(codes.split) : inner;
  const u32 head = LISTED != 0 ? inner : outer - page * ARGS(heads);
  const INDEX from = LISTED != 0 ? cache_row(ARGS(floats), outer, 0u, head)
                                 : cache_row(ARGS(floats), page, slot, head);
  const INDEX to = cache_row(ARGS(codes), page, slot, head);
  const INDEX at = cache_row(ARGS(scale), page, slot, head);

  float scale = 1.0f;
  if (TO_U32(MODE) == TO_U32(CACHE_SCALE_GIVEN)) {
    if (counts) scale = SCALE(at);
  } else {
    CACHE_PEAKS peaks_of_chunks = CACHE_NO_PEAK;
    if (counts) {
      for (u32 i = CACHE_LANE * CACHE_WIDTH; i < ARGS(dim); i += CACHE_LANES * CACHE_WIDTH) {
        CACHE_LOAD(from + i, ARGS(dim) - i);
        CACHE_PEAK(peaks_of_chunks);
      }
    }
    const float peak = LARGEST_LINE(CACHE_LARGEST(peaks_of_chunks));
    scale = cache_scale(peak, largest);
    if (counts && CACHE_LANE == 0u) {
      if (TO_U32(MODE) == TO_U32(CACHE_SCALE_PEAK)) {
        STORE_PEAK(peak, row);
      } else {
        STORE_SCALE(scale, at);
      }
    }
  }
  if (counts && TO_U32(MODE) != TO_U32(CACHE_SCALE_PEAK)) {
    CACHE_DIVIDE_BY(scale)
    for (u32 i = CACHE_LANE * CACHE_WIDTH; i < ARGS(dim); i += CACHE_LANES * CACHE_WIDTH) {
      CACHE_LOAD(from + i, ARGS(dim) - i);
      CACHE_STORE(to + i, ARGS(dim) - i);
    }
  }
}
