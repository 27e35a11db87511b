// SPDX-License-Identifier: Apache-2.0
// The body of common/boundaries.cl and common/boundaries.comp. Text for OpenCL C and GLSL.
// LOAD_BOUNDARY(i) and COUNT are what the operands hold, HIGHEST(item) a shared number of each
// item, RESULT(i) a boundary in scratch, RAISE(kind, index) raises an error.

const u32 item = LOCAL_ID, boundaries = ARGS(boundaries);
const i32 tokens = TO_INT(ARGS(tokens));
u32 last = boundaries - 1u;
if (ARGS(counted) != 0u) last = TO_U32(clamp(COUNT, 0, TO_INT(last)));
const u32 share = (boundaries + TO_U32(WG_X) - 1u) / TO_U32(WG_X);
const u32 first = min(item * share, boundaries), end = min(first + share, boundaries);
i32 highest = 0;
for (u32 i = first; i < min(end, last + 1u); ++i) {
  const i32 boundary = LOAD_BOUNDARY(i);
  if (boundary < 0 || boundary > tokens) RAISE(ARGS(outside), i);
  if (i > 0u && boundary < LOAD_BOUNDARY(i - 1u)) RAISE(ARGS(decreases), i);
  highest = max(highest, min(boundary, tokens));
}
// The highest of the shares up to each item's.
HIGHEST(item) = highest;
BARRIER();
for (u32 distance = 1u; distance < TO_U32(WG_X); distance *= 2u) {
  const i32 before = item >= distance ? HIGHEST(item - distance) : 0;
  BARRIER();
  HIGHEST(item) = max(HIGHEST(item), before);
  BARRIER();
}
highest = item > 0u ? HIGHEST(item - 1u) : 0;
for (u32 i = first; i < end; ++i) {
  if (i <= last) highest = max(highest, min(LOAD_BOUNDARY(i), tokens));
  RESULT(i) = highest;
}
