// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/dequantise.cl and kv_cache/rows/dequantise.comp. Text for OpenCL C and
// GLSL. WIDEN_CHUNK(from, to, left) takes eight elements from codes to floats, or two where ALIGNED
// is 0.

const u32 lane = LOCAL_ID % TO_U32(LANES), line = LOCAL_ID / TO_U32(LANES);
const u32 lines = TO_U32(WG_X) / TO_U32(LANES), dim = ARGS(dim), type = ARGS(type);
const u32 width = ALIGNED != 0 ? 8u : 2u;
for (u32 row = GROUP_ID * lines + line; row < ARGS(rows); row += GROUP_COUNT * lines) {
  const u32 a = row % ARGS(heads), n = row / ARGS(heads), b = 0u;
  const INDEX from = ROW_AT(ARGS(codes), n), to = ROW_AT(ARGS(floats), n);
  const float scale = SCALE(ROW_AT(ARGS(scale), n));
  for (u32 i = lane * width; i < dim; i += TO_U32(LANES) * width)
    WIDEN_CHUNK(from + i, to + i, dim - i);
}
