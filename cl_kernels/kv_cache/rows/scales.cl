// SPDX-License-Identifier: Apache-2.0
// What     A scale of many rows from their largest magnitudes: largest of all / largest code
// Who      A work-group owns a scale, an item every WG_X-th row.
// Memory   A float for each row.
// Numerics Float; 1 where the scale is below the smallest normal number.
// Assumes  Fewer than 2^31 rows; WG_X is a power of 2.
#include "kv_cache/core/codes.clh"

#define PEAK(row) peaks[row]
#define SCALE(i) scales[i]
#define LARGEST(x) largest_of_group(space, x)

INLINE float largest_of_group(local float* space, float x) {
  const uint item = get_local_id(0);
  space[item] = x;
  for (uint width = WG_X / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < width) space[item] = fmax(space[item], space[item + width]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return space[0];
}

KERNEL void cache_scales(const global float* restrict peaks, global float* restrict scales,
                         const struct CacheScalesArgs args) {
  local float space[WG_X];
#include "operations/kv_cache/rows/scales.h"
}
