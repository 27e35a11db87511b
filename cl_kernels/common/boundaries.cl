// SPDX-License-Identifier: Apache-2.0
// What     Boundaries of packed sequences, cut to the tokens and to not decrease: scratch[result + i]. What is wrong with
//          them.
// Who      One work-group; an item owns neighbours.
// Memory   Each boundary three times, the one before it once.
// Numerics Integers.
// Assumes  Tokens below 2^31.
#include "lib/errors.clh"
#include "operations/common/boundaries_args.h"

#define LOCAL_ID ((uint)get_local_id(0))
#define ARGS(name) (args.name)
#define LOAD_BOUNDARY(i) boundaries_of[args.offset + (i)*args.stride]
#define COUNT count_of[args.count_offset]
#define HIGHEST(item) highest_of[item]
#define RESULT(i) scratch[args.result + (i)]
#define RAISE(kind, index) raise_error(errors, args.errors, kind, index)
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

KERNEL void common_boundaries(const global int* restrict boundaries_of, const global int* restrict count_of,
                              global int* restrict scratch, volatile global uint* restrict errors,
                              const struct BoundariesArgs args) {
  local int highest_of[WG_X];
#include "operations/common/boundaries.h"
}
