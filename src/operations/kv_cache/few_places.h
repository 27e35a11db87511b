// SPDX-License-Identifier: Apache-2.0
// What common/boundaries and places do, by one work-group for a few tokens. Text for OpenCL C and
// GLSL, which say what those two ask for; START(sequence), LENGTH(sequence) and PLACE(n) are shared
// memory, and so is the word DISORDER. LOAD_LENGTH(sequence) is what the operand holds, FEW(name)
// are the arguments of both.

if (LOCAL_ID == 0u) DISORDER = 0u;
BARRIER();
#define ARGS(name) (FEW(boundaries).name)
// Boundaries in order, of as many sequences as there may be, count as they are. (Of items that take
// every WG_X-th lavapipe 22.3 loses some.)
const u32 share_of_item = (ARGS(boundaries) + TO_U32(WG_X) - 1u) / TO_U32(WG_X);
const u32 end_of_share = min((LOCAL_ID + 1u) * share_of_item, ARGS(boundaries));
u32 disorder_here = ARGS(counted) != 0u && COUNT + 1 != TO_INT(ARGS(boundaries)) ? 1u : 0u;
for (u32 i = LOCAL_ID * share_of_item; i < end_of_share; ++i) {
  const i32 boundary = LOAD_BOUNDARY(i), before = i > 0u ? LOAD_BOUNDARY(i - 1u) : 0;
  START(i) = boundary;
  if (i + 1u < ARGS(boundaries)) LENGTH(i) = LOAD_LENGTH(i);
  if (boundary < before || boundary > TO_INT(ARGS(tokens))) disorder_here = 1u;
}
if (disorder_here != 0u) DISORDER = 1u;
BARRIER();
if (DISORDER != 0u) {
#include "operations/common/boundaries.h"
  BARRIER();
}
#undef ARGS
#define ARGS(name) (FEW(places).name)
for (u32 first_of = 0u; UNIFORM(first_of < max(ARGS(list), ARGS(sequences)));
     first_of += TO_U32(WG_X)) {
#define GLOBAL_ID (first_of + LOCAL_ID)
#include "operations/kv_cache/places.h"
}
#undef ARGS
BARRIER();
