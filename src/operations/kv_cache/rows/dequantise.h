// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/dequantise.cl and kv_cache/rows/dequantise.comp. Text for OpenCL C and
// GLSL. WIDEN_CHUNK(from, to, left) takes eight elements from codes to floats, or two where ALIGNED
// is 0.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim);
const u32 width = ALIGNED != 0 ? 8u : 2u;
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const u32 n = row / ARGS(heads), a = row - n * ARGS(heads);
  const u32 page = n / ARGS(codes.split), slot = n - page * ARGS(codes.split);
  const INDEX from = cache_row(ARGS(codes), page, slot, a);
  const INDEX to = cache_row(ARGS(floats), page, slot, a);
  const float scale = SCALE(cache_row(ARGS(scale), page, slot, a));
  for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width)
    WIDEN_CHUNK(from + i, to + i, dim - i);
}
