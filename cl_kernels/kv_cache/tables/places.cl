// SPDX-License-Identifier: Apache-2.0
// What     scratch[n] = the slot of the pool in which token n has its place, or none; what is wrong with the tables
// Who      An item owns a token, and looks at the sequence of its number.
// Memory   The tables; of the offsets as many as a binary search looks at.
// Numerics Integers.
// Assumes  Slots of the pool and entries of the tables below 2^31; common/boundaries has run.
#include "lib/errors.clh"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

#define GLOBAL_ID ((uint)get_global_id(0))
#define ARGS(name) (args.name)
#define SLOT(i) slots[args.slots_offset + (i)]
#define TABLE(sequence, page) tables[args.tables_offset + (size_t)(sequence) * args.tables_stride + (page)]
#define LENGTH(sequence) lengths[args.lengths_offset + (sequence)]
#define START(sequence) scratch[args.boundaries + (sequence)]
#define COUNT count_of[args.count_offset]
#define PLACE(n) scratch[n]
#define RAISE(kind, index) raise_error(errors, args.errors, kind, index)

KERNEL void cache_places(const global int* restrict slots, const global int* restrict tables,
                         const global int* restrict lengths, const global int* restrict count_of,
                         global int* restrict scratch, volatile global uint* errors,
                         const struct CachePlacesArgs args) {
#include "operations/kv_cache/places.h"
}
