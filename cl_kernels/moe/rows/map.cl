// SPDX-License-Identifier: Apache-2.0
// What     scratch[row] = the choice that has its place there; what is wrong with choices
// Who      An item owns every so many choices.
// Memory   Choices and their slots once.
// Numerics Integers; of several choices for one row the last.
// Assumes  Fewer than 2^31 rows and choices.
#include "moe/rows/rows.clh"

#define MAP_LARGEST(row, n) atomic_max(map + (row), n)

KERNEL void moe_map(const global int* restrict ids, const global int* restrict slots, const global int* restrict starts,
                    volatile global int* map, volatile global uint* errors, const struct MoeRowsArgs args) {
#include "operations/moe/rows/map.h"
}
