// SPDX-License-Identifier: Apache-2.0
// What     The place of each choice among those of its expert, in the order of tokens; -1 beyond the capacity
// Who      A work-group owns a block of choices, an item every WG_X-th of them.
// Memory   Choices once, then from local memory.
// Numerics Integers.
// Assumes  Fewer than 2^31 choices.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"

#define ID(i) ids[args.ids_offset + (i)]
#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]
#define STORE_SLOT(x, i) slots[args.slots_offset + (i)] = (x)

KERNEL void moe_place(const global int* restrict ids, const global uint* restrict scratch, global int* restrict slots,
                      const struct MoeRouteArgs args) {
  local int IDS[MOE_BLOCK];
#include "operations/moe/route/place.h"
}
