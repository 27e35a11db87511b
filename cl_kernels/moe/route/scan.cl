// SPDX-License-Identifier: Apache-2.0
// What     scratch: the choices of each expert in front of each block, and in all; how many have a place, where experts begin
// Who      One work-group, an item every WG_X-th expert.
// Memory   The counts of blocks twice.
// Numerics Integers.
// Assumes  Experts up to ROOM.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"

#define BLOCK_COUNT(block, e) scratch[args.block_counts + (block) * args.experts + (e)]
#define TOTAL(e) scratch[args.totals + (e)]
#define STORE_COUNT(x, e) counts[args.counts_offset + (e)] = (int)(x)
#define STORE_OFFSET(x, e) offsets[args.offsets_offset + (e)] = (int)(x)

KERNEL void moe_scan(global uint* restrict scratch, global int* restrict counts, global int* restrict offsets,
                     const struct MoeRouteArgs args) {
  local uint KEPT[ROOM];
#include "operations/moe/route/scan.h"
}
