// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/scales.cl and kv_cache/rows/scales.comp. Text for OpenCL C and GLSL.
// PEAK(row) is the largest magnitude of a row, LARGEST(x) that of all items.

const u32 entry = GROUP_ID, all = ARGS(count);
float peak = 0.0f;
for (u32 first = LOCAL_ID; first < all; first += 4u * TO_U32(WG_X)) {
  // Four are asked for at once; the last one again behind the end.
  float four[4];
  for (u32 j = 0u; j < 4u; ++j) {
    const u32 i = min(first + j * TO_U32(WG_X), all - 1u);
    const u32 run = i / ARGS(run), in_run = i - run * ARGS(run);
    four[j] = PEAK(entry * ARGS(first_step) + run * ARGS(step) + in_run);
  }
  for (u32 j = 0u; j < 4u; ++j) peak = four[j] > peak ? four[j] : peak;
}
peak = LARGEST(peak);
if (LOCAL_ID == 0u) SCALE(ARGS(offset) + entry * ARGS(stride)) = cache_scale(peak, ARGS(largest));
