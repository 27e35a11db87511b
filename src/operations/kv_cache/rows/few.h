// SPDX-License-Identifier: Apache-2.0
// The body of kv_cache/rows/few.cl and kv_cache/rows/few.comp: a work-group finds the places of all
// tokens, and copies the rows of one, of which each item asks for a unit first. Text for OpenCL C
// and GLSL; OVERWRITTEN is a shared word, LOAD_UNIT(at) and STORE_UNIT(at, unit) are of either
// side, the rest is what the parts ask for.

const u32 token = GROUP_ID, units = UNITS, b = 0u;
const u32 units_of_token = args.copy.axis0 * units;
u32 number = LOCAL_ID;
UNIT_TYPE ahead;
if (number < units_of_token) {
  const u32 a = number / units;
  ahead = LOAD_UNIT(ROW_AT(FROM, token) + number % units);
}
if (LOCAL_ID == 0u) OVERWRITTEN = 0u;
#include "operations/kv_cache/few_places.h"
for (u32 other = token + 1u + LOCAL_ID; other < FEW(places).list; other += TO_U32(WG_X))
  if (PLACE(other) == PLACE(token)) OVERWRITTEN = 1u;
BARRIER();
const i32 place = OVERWRITTEN == 0u ? PLACE(token) : CACHE_NOWHERE;
while (place != CACHE_NOWHERE && number < units_of_token) {
  const u32 a = number / units, next = number + TO_U32(WG_X);
  STORE_UNIT(ROW_AT(TO, TO_U32(place)) + number % units, ahead);
  if (next < units_of_token) {
    const u32 a = next / units;
    ahead = LOAD_UNIT(ROW_AT(FROM, token) + next % units);
  }
  number = next;
}
