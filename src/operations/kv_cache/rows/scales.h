// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/scales.cl and kv_cache/rows/scales.comp. Text for OpenCL C and GLSL.
// PEAK(row) is the largest magnitude of a row, LARGEST(x) that of all items.

const u32 entry = GROUP_ID;
float peak = 0.0f;
for (u32 i = LOCAL_ID; i < ARGS(count); i += TO_U32(WG_X)) {
  const float other = PEAK(entry * ARGS(first_step) + i * ARGS(step));
  peak = other > peak ? other : peak;
}
peak = LARGEST(peak);
if (LOCAL_ID == 0u) SCALE(ARGS(offset) + entry * ARGS(stride)) = cache_scale(peak, ARGS(largest));
