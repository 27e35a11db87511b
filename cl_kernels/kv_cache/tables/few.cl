// SPDX-License-Identifier: Apache-2.0
// What     The slot of the pool in which each token has its place, or none, the last of several with one place; what is
//          wrong with the tables and the offsets. As common/boundaries, places and last, in one launch.
// Who      One work-group; an item owns every WG_X-th token, and looks at the sequence of its number.
// Memory   The tables; offsets and places in local memory.
// Numerics Integers.
// Assumes  CACHE_FEW tokens and sequences at most; slots of the pool and entries of the tables below 2^31.
#include "lib/errors.clh"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

#define LOCAL_ID ((uint)get_local_id(0))
#define LOAD_BOUNDARY(i) boundaries_of[args.boundaries.offset + (i)*args.boundaries.stride]
#define HIGHEST(item) highest_of[item]
#define RESULT(i) starts_of[i]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define SLOT(i) slots[args.places.slots_offset + (i)]
#define TABLE(sequence, page) \
  tables[args.places.tables_offset + (size_t)(sequence) * args.places.tables_stride + (page)]
#define LENGTH(sequence) lengths[args.places.lengths_offset + (sequence)]
#define START(sequence) starts_of[sequence]
#define COUNT count_of[args.places.count_offset]
#define PLACE(n) place_of[n]
#define LAST_PLACE(n) scratch[args.places.list + (n)]
#define RAISE(kind, index) raise_error(errors, args.places.errors, kind, index)

KERNEL void cache_few(const global int* restrict slots, const global int* restrict tables,
                      const global int* restrict lengths, const global int* restrict count_of,
                      const global int* restrict boundaries_of, global int* restrict scratch,
                      volatile global uint* errors, const struct CacheFewArgs args) {
  local int highest_of[WG_X], starts_of[CACHE_FEW + 1], place_of[CACHE_FEW];
#include "operations/kv_cache/tables/few.h"
}
