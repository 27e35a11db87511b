// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/copy.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/rows/copy.def"

layout(std430, binding = 0) buffer FromFours { uvec4 from_fours[]; };
layout(std430, binding = 0) buffer FromWords { uint from_words[]; };
layout(std430, binding = 1) writeonly buffer ToFours { uvec4 to_fours[]; };
layout(std430, binding = 1) buffer ToWords { uint to_words[]; };
layout(std430, binding = 2) readonly buffer Scratch { int list[]; };
layout(std430, binding = 3) buffer MoreFromFours { uvec4 more_from_fours[]; };
layout(std430, binding = 3) buffer MoreFromWords { uint more_from_words[]; };
layout(std430, binding = 4) writeonly buffer MoreToFours { uvec4 more_to_fours[]; };
layout(std430, binding = 4) buffer MoreToWords { uint more_to_words[]; };
PUSH_ARGS(CacheCopyArgs);

// Units below a word: other items may store the rest of the word at the same time.
#define PART_SHIFT(at) ((at) % (4u / UNIT) * 8u * UNIT)
#define PART_MASK ((1u << (8u * UNIT)) - 1u)
#define PUT_PART(words, at, value)                                         \
  {                                                                        \
    atomicAnd(words[(at) / (4u / UNIT)], ~(PART_MASK << PART_SHIFT(at)));  \
    atomicOr(words[(at) / (4u / UNIT)], (value) << PART_SHIFT(at));        \
  }

#define COPY_PART(from_fours, from_words, to_fours, to_words, from, to)                            \
  if (UNIT == 16u) {                                                                               \
    to_fours[to] = from_fours[from];                                                               \
  } else if (UNIT == 4u) {                                                                         \
    to_words[to] = from_words[from];                                                               \
  } else {                                                                                         \
    PUT_PART(to_words, to, (from_words[(from) / (4u / UNIT)] >> PART_SHIFT(from)) & PART_MASK)     \
  }

#define CLEAR_UNIT(fours, words, at) \
  if (UNIT == 16u) {                 \
    fours[at] = uvec4(0u);           \
  } else if (UNIT == 4u) {           \
    words[at] = 0u;                  \
  } else {                           \
    PUT_PART(words, at, 0u)          \
  }

#define INDEX uint
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define ROW_AT(at, n)                                                                                        \
  ((at).offset + (n) / (at).split * (at).outer + (n) % (at).split * (at).inner + a * (at).axis0 + b * (at).axis1)
bool more;  // of groups (x, 1)
CacheRows from_rows, to_rows;
uint units_of_row;
#define UNITS units_of_row
#define FROM from_rows
#define TO to_rows

void copy_unit(uint from, uint to) {
  if (more) {
    COPY_PART(more_from_fours, more_from_words, more_to_fours, more_to_words, from, to)
  } else {
    COPY_PART(from_fours, from_words, to_fours, to_words, from, to)
  }
}
void clear_from(uint at) {
  if (more) {
    CLEAR_UNIT(more_from_fours, more_from_words, at)
  } else {
    CLEAR_UNIT(from_fours, from_words, at)
  }
}
void clear_to(uint at) {
  if (more) {
    CLEAR_UNIT(more_to_fours, more_to_words, at)
  } else {
    CLEAR_UNIT(to_fours, to_words, at)
  }
}
#define COPY_UNIT(from, to) copy_unit(from, to)
#define CLEAR_FROM(at) clear_from(at)
#define CLEAR_TO(at) clear_to(at)

void main() {
  more = gl_WorkGroupID.y != 0u;
  from_rows = args.from;
  to_rows = args.to;
  units_of_row = args.units;
  if (more) {
    from_rows = args.more_from;
    to_rows = args.more_to;
    units_of_row = args.more_units;
  }
#include "operations/kv_cache/rows/copy.h"
}
