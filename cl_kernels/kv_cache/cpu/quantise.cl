// SPDX-License-Identifier: Apache-2.0
// What     Rows of floats to codes: as kv_cache/rows/quantise.cl.
// Who      A work-group is one item and owns consecutive rows, a vector of one at a time.
// Memory   Floats once from memory, and once from a cache where the row makes its scale; codes once.
// Numerics As there.
// Assumes  As there.
#include "kv_cache/cpu/rows.clh"

#define LIST(i) list[i]
#define SCALE(i) scales[i]
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_PEAK(value, i) peaks[i] = (value)
#define CACHE_PEAKS floatv
#define CACHE_NO_PEAK ((floatv)(0.0f))
#define CACHE_LOAD(at, left)                        \
  PREFETCH(floats + (at) + CACHE_AHEAD);            \
  const floatv x = load_part(floats + (at), (int)(left))
#define CACHE_PEAK(peak) peak = fabs(x) > peak ? fabs(x) : peak
#define CACHE_LARGEST(peak) largest_of_lanes(peak)
#define CACHE_DIVIDE_BY(scale)
#define CACHE_STORE(at, left) \
  store_codes_part(codes_of_vector(x / scale, CODES, largest), codes, at, (int)(left), CODES == DTYPE_I4)

KERNEL void cache_quantise_cpu(const global scalar* restrict floats, global uchar* restrict codes,
                               global float* restrict scales, const global int* restrict list,
                               global float* restrict peaks, const struct CacheCodesArgs args) {
#include "operations/kv_cache/quantise.h"
}
