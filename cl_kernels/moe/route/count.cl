// SPDX-License-Identifier: Apache-2.0
// What     scratch: how often each expert is chosen within each block of choices
// Who      A work-group owns a block, an item every WG_X-th expert.
// Memory   The choices of a block by all items at the same time.
// Numerics Integers.
// Assumes  Fewer than 2^31 choices.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"

#define ID(i) ids[args.ids_offset + (i)]
#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]

KERNEL void moe_count(const global int* restrict ids, global uint* restrict scratch, const struct MoeRouteArgs args) {
#include "operations/moe/route/count.h"
}
