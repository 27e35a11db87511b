// SPDX-License-Identifier: Apache-2.0
// What     The lists by which pages are copied: those that another pair overwrites through scratch, the others at once;
//          of pairs with one target the last. What is wrong with the pairs.
// Who      An item owns a pair and asks the words of its pages, in three rounds.
// Memory   A pair and its words in each round.
// Numerics Integers; a maximum, whatever the order.
// Assumes  Fewer than 2^29 pairs.
#include "lib/errors.clh"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

#define GLOBAL_ID ((uint)get_global_id(0))
#define ARGS(name) (args.name)
#define SOURCE(i) sources[args.sources_offset + (i)]
#define TARGET(i) targets[args.targets_offset + (i)]
#define LIST(part, i) lists[(part) * args.pairs + (i)]
#define OWNER(page) lists[args.owners + (page)]
#define CLAIM(page, number) atomic_max(&OWNER(page), number)
#define RAISE(kind, index) raise_error(errors, args.errors, kind, index)

KERNEL void cache_pairs(const global int* restrict sources, const global int* restrict targets,
                        volatile global int* restrict lists, volatile global uint* errors, const struct CachePairsArgs args) {
#include "operations/kv_cache/tables/pairs.h"
}
