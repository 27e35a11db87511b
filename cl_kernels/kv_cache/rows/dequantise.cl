// SPDX-License-Identifier: Apache-2.0
// What     Rows of codes to floats: float = code * scale
// Who      LANES items own a row at a time, an item every LANES-th chunk of it.
// Memory   Codes once, 8 bytes at a time where ALIGNED; floats once, by 16 bytes there.
// Numerics One product in float, rounded to the storage type.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32.
#include "kv_cache/core/codes.clh"
#include "lib/chunks.clh"
#include "lib/codes.clh"
#include "operations/kv_cache/rows/lines.h"

#define SCALE(i) scales[i]
#if ALIGNED
#define WIDEN_CHUNK(from, to, left) widen_chunk(codes, from, floats, to, scale)
INLINE void widen_chunk(const global uchar* codes, size_t from, global scalar* floats, size_t to, float scale) {
  float4 low, high;
  if (CODES == DTYPE_I4) {
    const uint word = *(const global uint*)(codes + from / 2);
    low = floats_of_half_bytes(word);
    high = floats_of_half_bytes(word >> 16);
  } else {
    const uint2 words = *(const global uint2*)(codes + from);
    low = floats_of_bytes(words.s0, CODES);
    high = floats_of_bytes(words.s1, CODES);
  }
  store_chunk(low * scale, high * scale, floats, to, 8);
#if DTYPE == DTYPE_F32
  store_column(high * scale, floats, to + 4, 4);
#endif
}
#else
#define CODE(i) (CODES == DTYPE_I4 ? load_half_byte(codes, i) : load_byte(codes, i))
#define WIDEN_CHUNK(from, to, left)                                                                        \
  {                                                                                                        \
    store_scalar(from_storage(CODES, CODE(from)) * scale, floats, to);                                     \
    if ((left) > 1) store_scalar(from_storage(CODES, CODE((from) + 1)) * scale, floats, (to) + 1);         \
  }
#endif

KERNEL void cache_dequantise(const global uchar* restrict codes, const global float* restrict scales,
                             global scalar* restrict floats, const struct CacheCodesArgs args) {
#include "operations/kv_cache/dequantise.h"
}
