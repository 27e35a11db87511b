// SPDX-License-Identifier: Apache-2.0
// What     The list behind places: of tokens with one place the last keeps it, the others have none
// Who      An item owns a token and asks the word of its place, in three rounds.
// Memory   A place and its word in each round.
// Numerics Integers; a maximum, whatever the order.
// Assumes  Places in the first part of scratch, then the list, then a word for each slot of the pool.
#include "lib/prelude.clh"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

#define GLOBAL_ID ((uint)get_global_id(0))
#define ARGS(name) (args.name)
#define PLACE(n) places[n]
#define OWNER(place) places[2 * args.list + (place)]
#define CLAIM(place, number) atomic_max(&OWNER(place), number)
#define LAST_PLACE(n) places[args.list + (n)]

KERNEL void cache_last(volatile global int* places, const struct CachePlacesArgs args) {
#include "operations/kv_cache/tables/last.h"
}
