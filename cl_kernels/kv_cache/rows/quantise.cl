// SPDX-License-Identifier: Apache-2.0
// What     Rows of floats to codes, at the slots that a list in scratch says: code = float / scale. Scales are given, or
//          each row makes its own, or the rows' largest magnitudes are all that is wanted.
// Who      LANES items own a row at a time, an item every LANES-th chunk of it.
// Memory   Floats once from memory, 16 bytes at a time where ALIGNED, and once from a cache where the row makes its
//          scale; codes by 8 bytes there.
// Numerics Float; scale = largest magnitude / largest code, 1 below the smallest normal number; a NaN is no largest. One
//          quotient and one rounding to nearest even.
// Assumes  No two rows have one target. Fewer than 2^31 rows; offsets and strides below 2^32.
#include "kv_cache/core/codes.clh"
#include "lib/chunks.clh"
#include "lib/codes.clh"
#include "lib/lines.clh"
#include "operations/kv_cache/rows/lines.h"

#define LIST(i) list[i]
#define SCALE(i) scales[i]
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_PEAK(value, i) peaks[i] = (value)

#if ALIGNED
#if DTYPE == DTYPE_F32
#define CACHE_LOAD(at, left) const float4 low = load_column(floats, at, 4), high = load_column(floats, (at) + 4, 4)
#else
#define CACHE_LOAD(at, left)                        \
  const uint4 chunk = load_chunk(floats, at, 8);    \
  const float4 low = chunk_vector(chunk, 0), high = chunk_vector(chunk, 1)
#endif
#define CACHE_PEAK(peak)                                                                      \
  const float4 most = fmax(fabs(low), fabs(high));                                               \
  peak = fmax(peak, fmax(fmax(most.s0, most.s1), fmax(most.s2, most.s3)))
#define CACHE_STORE(at, left) \
  store_codes(codes, at, quotients(low, scale, inverse), quotients(high, scale, inverse), largest)

INLINE float4 quotients(float4 x, float scale, float inverse) {
  return (float4)(quotient_by_scale(x.s0, scale, inverse), quotient_by_scale(x.s1, scale, inverse),
                  quotient_by_scale(x.s2, scale, inverse), quotient_by_scale(x.s3, scale, inverse));
}

// As to_integer(), four at a time.
INLINE uint4 integer_codes(float4 x, float most, uint mask) {
  const int4 number = (as_uint4(x) & 0x7fffffffu) <= 0x7f800000u;
  const float4 bounded = clamp(as_float4(as_int4(x) & number), -most, most);
  const float magic = 12582912.0f;
  return (as_uint4(bounded + magic) - as_uint(magic)) & mask;
}
INLINE uint byte_codes(float4 x, float largest) {
#if SM80
  if (CODES == DTYPE_I8) return pack_symmetric_bytes(x);
#endif
  return CODES == DTYPE_I8 ? word_of_codes(integer_codes(x, largest, 0xffu)) : code_word(x, CODES);
}
INLINE uint half_byte_codes(float4 low, float4 high, float largest) {
#if SM80
  return pack_symmetric_half_bytes(low, high);
#else
  const uint4 even = integer_codes(low, largest, 0xfu), odd = integer_codes(high, largest, 0xfu);
  return even.s0 | even.s1 << 4 | even.s2 << 8 | even.s3 << 12 | odd.s0 << 16 | odd.s1 << 20 | odd.s2 << 24 |
         odd.s3 << 28;
#endif
}
INLINE void store_codes(global uchar* codes, size_t at, float4 low, float4 high, float largest) {
  if (CODES == DTYPE_I4) {
    *(global uint*)(codes + at / 2) = half_byte_codes(low, high, largest);
  } else {
    *(global uint2*)(codes + at) = (uint2)(byte_codes(low, largest), byte_codes(high, largest));
  }
}
#else
#define CODE(x) cache_code(CODES, quotient_by_scale(x, scale, inverse), largest)
#define CACHE_LOAD(at, left) \
  const float x0 = load_scalar(floats, at), x1 = (left) > 1 ? load_scalar(floats, (at) + 1) : 0.0f
#define CACHE_PEAK(peak) peak = fmax(peak, fmax(fabs(x0), fabs(x1)))
#define CACHE_STORE(at, left)                              \
  if (CODES == DTYPE_I4) {                                 \
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
#include "operations/kv_cache/quantise.h"
}
