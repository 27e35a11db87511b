// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/few.cl and kv_cache/tables/few.comp: what common/boundaries, places
// and last do, for a few tokens. Text for OpenCL C and GLSL, which say what those three ask for;
// START(sequence) and PLACE(n) are shared memory.

#define ARGS(name) (args.boundaries.name)
{
#include "operations/common/boundaries.h"
}
#undef ARGS
#define ARGS(name) (args.places.name)
BARRIER();
for (u32 first_of = 0u; first_of < max(ARGS(list), ARGS(sequences)); first_of += TO_U32(WG_X)) {
#define GLOBAL_ID (first_of + LOCAL_ID)
#include "operations/kv_cache/tables/places.h"
}
BARRIER();
for (u32 own = LOCAL_ID; own < ARGS(list); own += TO_U32(WG_X)) {
  const i32 own_place = PLACE(own);
  u32 later = 0u;
  for (u32 other = own + 1u; other < ARGS(list); ++other)
    later += PLACE(other) == own_place ? 1u : 0u;
  LAST_PLACE(own) = later == 0u ? own_place : CACHE_NOWHERE;
}
