// SPDX-License-Identifier: Apache-2.0
// What     Rows of codes to floats: float = code * scale
// Who      LANES items own a row at a time, an item every LANES-th chunk of it.
// Memory   Codes once, by words where ALIGNED; floats once.
// Numerics One product in float, rounded to the storage type.
// Assumes  Fewer than 2^31 rows; offsets and strides below 2^32.
#include "kv_cache/rows/codes.clh"

#define SCALE(i) scales[i]
#if ALIGNED
#define WIDEN_CHUNK(from, to, left) widen_chunk(codes, from, floats, to, type, scale)
INLINE float4 widen_word(uint word, u32 type) {
  return (float4)(from_storage(type, word & 0xffu), from_storage(type, (word >> 8) & 0xffu),
                  from_storage(type, (word >> 16) & 0xffu), from_storage(type, word >> 24));
}
INLINE void widen_chunk(const global uchar* codes, size_t from, global scalar* floats, size_t to, u32 type,
                        float scale) {
  float4 low, high;
  if (type == DTYPE_I4) {
    const uint word = *(const global uint*)(codes + from / 2);
    low = convert_float4((int4)(from_i4(word & 0xfu), from_i4((word >> 4) & 0xfu), from_i4((word >> 8) & 0xfu),
                                from_i4((word >> 12) & 0xfu)));
    high = convert_float4((int4)(from_i4((word >> 16) & 0xfu), from_i4((word >> 20) & 0xfu),
                                 from_i4((word >> 24) & 0xfu), from_i4(word >> 28)));
  } else {
    low = widen_word(*(const global uint*)(codes + from), type);
    high = widen_word(*(const global uint*)(codes + from + 4), type);
  }
  store_scalar4(low * scale, floats, to);
  store_scalar4(high * scale, floats, to + 4);
}
#else
#define CODE(i) (type == DTYPE_I4 ? load_half_byte(codes, i) : load_byte(codes, i))
#define WIDEN_CHUNK(from, to, left)                                                                       \
  {                                                                                                       \
    store_scalar(from_storage(type, CODE(from)) * scale, floats, to);                                     \
    if ((left) > 1) store_scalar(from_storage(type, CODE((from) + 1)) * scale, floats, (to) + 1);         \
  }
#endif

KERNEL void cache_dequantise(const global uchar* restrict codes, const global float* restrict scales,
                             global scalar* restrict floats, const struct CacheCodesArgs args) {
#include "operations/kv_cache/rows/dequantise.h"
}
