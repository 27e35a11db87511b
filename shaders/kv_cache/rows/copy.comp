// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/copy.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/rows/copy.def"

layout(std430, binding = 0) readonly buffer FromFours { uvec4 from_fours[]; };
layout(std430, binding = 0) readonly buffer FromWords { uint from_words[]; };
layout(std430, binding = 1) writeonly buffer ToFours { uvec4 to_fours[]; };
layout(std430, binding = 1) buffer ToWords { uint to_words[]; };
layout(std430, binding = 2) readonly buffer Scratch { int list[]; };
PUSH_ARGS(CacheCopyArgs);

// Units below a word: other items may store the rest of the word at the same time.
void copy_part(uint from, uint to) {
  const uint parts = 4u / UNIT, bits = 8u * UNIT, mask = (1u << bits) - 1u;
  const uint value = (from_words[from / parts] >> (from % parts * bits)) & mask;
  const uint shift = to % parts * bits;
  atomicAnd(to_words[to / parts], ~(mask << shift));
  atomicOr(to_words[to / parts], value << shift);
}

void copy_unit(uint from, uint to) {
  if (UNIT == 16u) {
    to_fours[to] = from_fours[from];
  } else if (UNIT == 4u) {
    to_words[to] = from_words[from];
  } else {
    copy_part(from, to);
  }
}

#define INDEX uint
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define ROW_AT(at, n)                                                                                        \
  ((at).offset + (n) / (at).split * (at).outer + (n) % (at).split * (at).inner + a * (at).axis0 + b * (at).axis1)
#define COPY_UNIT(from, to) copy_unit(from, to)

void main() {
#include "operations/kv_cache/rows/copy.h"
}
