// SPDX-License-Identifier: Apache-2.0
// What     Rows of codes to floats: float = code * scale
// Who      A work-group is one item and owns consecutive rows, a vector of one at a time.
// Memory   Codes and floats once.
// Numerics One product in float, rounded to the storage type.
// Assumes  As kv_cache/rows/dequantise.cl.
#include "kv_cache/cpu/rows.clh"

#define SCALE(i) scales[i]
#define WIDEN_CHUNK(from, to, left)                                                                 \
  {                                                                                                 \
    PREFETCH(codes + (CODES == DTYPE_I4 ? (from) / 2 : (from)) + CACHE_AHEAD);                       \
    const ucharv some = load_codes_part(codes, from, (int)(left), CODES == DTYPE_I4);                           \
    store_part(floats_of_codes(some, CODES) * scale, floats + (to), (int)(left));                   \
  }

KERNEL void cache_dequantise_cpu(const global uchar* restrict codes, const global float* restrict scales,
                                 global scalar* restrict floats, const struct CacheCodesArgs args) {
#include "operations/kv_cache/dequantise.h"
}
