// SPDX-License-Identifier: Apache-2.0
// What     The list behind places: of tokens with one place the last keeps it, the others have none
// Who      An item owns a token and reads the places of all later ones.
// Memory   Places by fours, all items the same ones at the same time.
// Numerics Integers.
// Assumes  As many places as a multiple of 4, in the first part of scratch.
#include "lib/prelude.clh"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

#define GLOBAL_ID ((uint)get_global_id(0))
#define ARGS(name) (args.name)
#define FOUR_PLACES(i) (((const global int4*)places)[i])
#define LAST_PLACE(n) places[args.list + (n)]

KERNEL void cache_last(global int* places, const struct CachePlacesArgs args) {
#include "operations/kv_cache/tables/last.h"
}
