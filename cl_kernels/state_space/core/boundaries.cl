// SPDX-License-Identifier: Apache-2.0
// What     Boundaries of packed sequences, cut to the tokens and to not decrease; what is wrong with them is raised.
// Who      One work-group; an item owns neighbouring boundaries.
// Memory   Boundaries thrice, ordered ones once.
// Numerics Integers.
// Assumes  Fewer than 2^31 sequences.
#include "lib/errors.clh"
#include "operations/state_space_core/args.h"

#define ARGS(name) (args.name)
#define LOCAL_ID_X ((uint)get_local_id(0))
#define SPACE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define PARTS(i) parts[i]
#define LOAD_BOUNDARY(i) cu_seqlens[args.offset + (i)*args.stride]
#define STORE_BOUNDARY(x, i) scratch[i] = x
#define RAISE(error, index) raise_error(errors, args.errors, error, index)

KERNEL void state_space_boundaries(const global int* restrict cu_seqlens, global int* restrict scratch,
                                   volatile global uint* restrict errors, const struct SpaceBoundaryArgs args) {
  local int parts[WG_X];
#include "operations/state_space_core/boundaries.h"
}
