// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/copy.clh.
#ifndef TESSERA_KV_CACHE_ROWS_COPY_GLSL
#define TESSERA_KV_CACHE_ROWS_COPY_GLSL
#include "lib/prelude.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/rows/copy.def"

layout(std430, binding = 0) buffer FromFours { uvec4 from_fours[]; };
layout(std430, binding = 0) buffer FromWords { uint from_words[]; };
layout(std430, binding = 1) writeonly buffer ToFours { uvec4 to_fours[]; };
layout(std430, binding = 1) buffer ToWords { uint to_words[]; };
layout(std430, binding = 3) buffer MoreFromFours { uvec4 more_from_fours[]; };
layout(std430, binding = 3) buffer MoreFromWords { uint more_from_words[]; };
layout(std430, binding = 4) writeonly buffer MoreToFours { uvec4 more_to_fours[]; };
layout(std430, binding = 4) buffer MoreToWords { uint more_to_words[]; };

// Units below a word: other items may store the rest of the word at the same time.
#define PART_SHIFT(at) ((at) % (4u / UNIT) * 8u * UNIT)
#define PART_MASK ((1u << (8u * UNIT)) - 1u)
#define PUT_PART(words, at, value)                                         \
  {                                                                        \
    atomicAnd(words[(at) / (4u / UNIT)], ~(PART_MASK << PART_SHIFT(at)));  \
    atomicOr(words[(at) / (4u / UNIT)], (value) << PART_SHIFT(at));        \
  }

// Smaller units than 16 bytes are in x.
#define UNIT_TYPE uvec4
#define RETURN_PART(fours, words, at)                        \
  if (UNIT == 16u) return fours[at];                         \
  if (UNIT == 4u) return uvec4(words[at], 0u, 0u, 0u);       \
  return uvec4(words[(at) / (4u / UNIT)] >> PART_SHIFT(at) & PART_MASK, 0u, 0u, 0u);
#define STORE_PART(fours, words, at, bits) \
  if (UNIT == 16u) {                       \
    fours[at] = bits;                      \
  } else if (UNIT == 4u) {                 \
    words[at] = bits.x;                    \
  } else {                                 \
    PUT_PART(words, at, bits.x)            \
  }

#define INDEX uint
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ROW_AT(at, n)                                                                                        \
  ((at).offset + (n) / (at).split * (at).outer + (n) % (at).split * (at).inner + a * (at).axis0 + b * (at).axis1)
bool more;  // of groups (x, 1)
CacheRows from_rows, to_rows;
uint units_of_row;
#define UNITS units_of_row
#define FROM from_rows
#define TO to_rows

uvec4 load_unit(uint at) {
  if (more) {
    RETURN_PART(more_from_fours, more_from_words, at)
  }
  RETURN_PART(from_fours, from_words, at)
}
void store_unit(uint at, uvec4 x) {
  if (more) {
    STORE_PART(more_to_fours, more_to_words, at, x)
  } else {
    STORE_PART(to_fours, to_words, at, x)
  }
}
void clear_from(uint at) {
  const uvec4 zeros = uvec4(0u);
  if (more) {
    STORE_PART(more_from_fours, more_from_words, at, zeros)
  } else {
    STORE_PART(from_fours, from_words, at, zeros)
  }
}
void take_side(CacheCopyArgs copied) {
  more = gl_WorkGroupID.y != 0u;
  from_rows = copied.from;
  to_rows = copied.to;
  units_of_row = copied.units;
  if (more) {
    from_rows = copied.more_from;
    to_rows = copied.more_to;
    units_of_row = copied.more_units;
  }
}
#define LOAD_UNIT(at) load_unit(at)
#define STORE_UNIT(at, x) store_unit(at, x)
#define COPY_UNIT(from, to) store_unit(to, load_unit(from))
#define CLEAR_FROM(at) clear_from(at)
#define CLEAR_TO(at) store_unit(at, uvec4(0u))

#endif  // TESSERA_KV_CACHE_ROWS_COPY_GLSL
