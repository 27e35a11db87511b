// SPDX-License-Identifier: Apache-2.0
// What     As kv_cache/tables/few and kv_cache/rows/copy in one launch: rows of a few tokens go to their places.
// Who      Group (x, y): token x; with y = 1 its rows of the operands more_... An item owns every WG_X-th unit.
// Memory   The tables, by each group; offsets, lengths and places in local memory; each row once, by units of UNIT bytes.
// Numerics Bits are copied.
// Assumes  What both do; a grid of exactly as many tokens; rows by heads. Lists of the arguments are not looked at.
#include "kv_cache/rows/copy.clh"
#include "kv_cache/core/few.clh"

#define FEW(name) args.few.name
#define OVERWRITTEN overwritten

KERNEL void cache_few_rows(global unit* from_units, global unit* to_units, const global int* restrict slots,
                           global unit* more_from_units, global unit* more_to_units, const global int* restrict tables,
                           const global int* restrict lengths, const global int* restrict count_of,
                           const global int* restrict boundaries_of, volatile global uint* errors,
                           const struct CacheFewRowsArgs args) {
  FEW_LOCAL;
  local uint overwritten;
  COPIED_SIDE(args.copy)
#include "operations/kv_cache/rows/few.h"
}
