// SPDX-License-Identifier: Apache-2.0
// What     The slot of the pool in which each token has its place, or none, the last of several with one place; what is
//          wrong with the tables and the offsets. As common/boundaries, places and last, in one launch.
// Who      One work-group; an item owns every WG_X-th token, and looks at the sequence of its number.
// Memory   The tables; offsets and places in local memory.
// Numerics Integers.
// Assumes  CACHE_FEW tokens and sequences at most; slots of the pool and entries of the tables below 2^31.
#include "kv_cache/core/few.clh"

#define FEW(name) args.name
#define LOCAL_ID ((uint)get_local_id(0))
#define LAST_PLACE(n) scratch[args.places.list + (n)]

KERNEL void cache_few(const global int* restrict slots, const global int* restrict tables,
                      const global int* restrict lengths, const global int* restrict count_of,
                      const global int* restrict boundaries_of, global int* restrict scratch,
                      volatile global uint* errors, const struct CacheFewArgs args) {
  FEW_LOCAL;
#include "operations/kv_cache/tables/few.h"
}
