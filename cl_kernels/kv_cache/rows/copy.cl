// SPDX-License-Identifier: Apache-2.0
// What     Rows of a tensor to the rows of another, as lists in scratch say, bit by bit; moved ones leave zeros
// Who      LANES items own a row at a time, an item every LANES-th unit of it. Groups (x, 1), where the grid has any, do
//          as much for the operands behind the list.
// Memory   Each row once, by units of UNIT bytes.
// Numerics Bits are copied.
// Assumes  No two rows have one target, and no row is the target of another. Fewer than 2^31 rows; offsets and strides
//          below 2^32.
#include "kv_cache/rows/copy.clh"

#define ARGS(name) (args.name)
#define LIST(i) list[i]

KERNEL void cache_copy(global unit* from_units, global unit* to_units, const global int* list,
                       global unit* more_from_units, global unit* more_to_units, const struct CacheCopyArgs args) {
  COPIED_SIDE(args)
#include "operations/kv_cache/rows/copy.h"
}
