// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/tables/few.cl and kv_cache/tables/few.comp: what common/boundaries, places
// and last do, for a few tokens. Text for OpenCL C and GLSL; LAST_PLACE(n) is a place in scratch.
#include "operations/kv_cache/few_places.h"

for (u32 own = LOCAL_ID; own < FEW(places).list; own += TO_U32(WG_X)) {
  const i32 own_place = PLACE(own);
  u32 later = 0u;
  for (u32 other = own + 1u; other < FEW(places).list; ++other)
    later += PLACE(other) == own_place ? 1u : 0u;
  LAST_PLACE(own) = later == 0u ? own_place : CACHE_NOWHERE;
}
