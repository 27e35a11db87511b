// SPDX-License-Identifier: Apache-2.0
// The body of the kernels "dequantise" of kv_cache. Text for OpenCL C and GLSL. WIDEN_CHUNK(from,
// to, left) takes CACHE_WIDTH elements from codes to floats.

for (u32 row = CACHE_FIRST + CACHE_LINE; row < CACHE_END; row += CACHE_STEP) {
  const u32 outer = row / ARGS(codes.split), slot = row - outer * ARGS(codes.split);
  const u32 page = outer / ARGS(heads), head = outer - page * ARGS(heads);
  const INDEX from = cache_row(ARGS(codes), page, slot, head);
  const INDEX to = cache_row(ARGS(floats), page, slot, head);
  const float scale = SCALE(cache_row(ARGS(scale), page, slot, head));
  for (u32 i = CACHE_LANE * CACHE_WIDTH; i < ARGS(dim); i += CACHE_LANES * CACHE_WIDTH)
    WIDEN_CHUNK(from + i, to + i, ARGS(dim) - i);
}
