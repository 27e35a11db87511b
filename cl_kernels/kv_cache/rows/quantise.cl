// SPDX-License-Identifier: Apache-2.0
// What     Rows of floats to codes, at the slots that a list in scratch says: code = float / scale. Scales are given, or
//          each row makes its own, or the rows' largest magnitudes are all that is wanted.
// Who      LANES items own a row at a time, an item every LANES-th chunk of it.
// Memory   Floats once from memory, and once from a cache where the row makes its scale; codes by words where ALIGNED.
// Numerics Float; scale = largest magnitude / largest code, 1 below the smallest normal number; a NaN is no largest. One
//          division and one rounding to nearest even.
// Assumes  No two rows have one target. Fewer than 2^31 rows; offsets and strides below 2^32.
#include "kv_cache/rows/codes.clh"
#include "lib/lines.clh"

#define LIST(i) list[i]
#define SCALE(i) scales[i]
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_PEAK(value, i) peaks[i] = (value)
#define CODE(x) cache_code(type, (x) / scale, largest)

#if ALIGNED
#define LOAD_CHUNK(at, left) const float4 low = load_scalar4(floats, at), high = load_scalar4(floats, (at) + 4)
#define PEAK_OF_CHUNK(peak)                                                                      \
  const float4 most = fmax(fabs(low), fabs(high));                                               \
  peak = fmax(peak, fmax(fmax(most.s0, most.s1), fmax(most.s2, most.s3)))
#define STORE_CHUNK(at, left) store_codes(codes, at, type, low / scale, high / scale, largest)
// As to_integer(), four at a time.
INLINE uint4 integer_codes(float4 x, float most, uint mask) {
  const int4 number = (as_uint4(x) & 0x7fffffffu) <= 0x7f800000u;
  const float4 bounded = clamp(as_float4(as_int4(x) & number), -most, most);
  const float magic = 12582912.0f;
  return (as_uint4(bounded + magic) - as_uint(magic)) & mask;
}
INLINE void store_codes(global uchar* codes, size_t at, u32 type, float4 low, float4 high, float largest) {
  uint4 even, odd;
  if (type == DTYPE_I8 || type == DTYPE_I4) {
    const uint mask = type == DTYPE_I4 ? 0xfu : 0xffu;
    even = integer_codes(low, largest, mask);
    odd = integer_codes(high, largest, mask);
  } else {
    even = (uint4)(cache_code(type, low.s0, largest), cache_code(type, low.s1, largest),
                   cache_code(type, low.s2, largest), cache_code(type, low.s3, largest));
    odd = (uint4)(cache_code(type, high.s0, largest), cache_code(type, high.s1, largest),
                  cache_code(type, high.s2, largest), cache_code(type, high.s3, largest));
  }
  if (type == DTYPE_I4) {
    *(global uint*)(codes + at / 2) = even.s0 | even.s1 << 4 | even.s2 << 8 | even.s3 << 12 | odd.s0 << 16 |
                                      odd.s1 << 20 | odd.s2 << 24 | odd.s3 << 28;
  } else {
    *(global uint*)(codes + at) = even.s0 | even.s1 << 8 | even.s2 << 16 | even.s3 << 24;
    *(global uint*)(codes + at + 4) = odd.s0 | odd.s1 << 8 | odd.s2 << 16 | odd.s3 << 24;
  }
}
#else
#define LOAD_CHUNK(at, left) \
  const float x0 = load_scalar(floats, at), x1 = (left) > 1 ? load_scalar(floats, (at) + 1) : 0.0f
#define PEAK_OF_CHUNK(peak) peak = fmax(peak, fmax(fabs(x0), fabs(x1)))
#define STORE_CHUNK(at, left)                              \
  if (type == DTYPE_I4) {                                  \
    store_half_bytes(CODE(x0), CODE(x1), codes, at);       \
  } else {                                                 \
    store_byte(CODE(x0), codes, at);                       \
    if ((left) > 1) store_byte(CODE(x1), codes, (at) + 1); \
  }
#endif

KERNEL void cache_quantise(const global scalar* restrict floats, global uchar* restrict codes,
                           global float* restrict scales, const global int* restrict list,
                           global float* restrict peaks, const struct CacheCodesArgs args) {
#if LANES > 1
  local float space[WG_X];
#endif
#include "operations/kv_cache/rows/quantise.h"
}
