// SPDX-License-Identifier: Apache-2.0
// What     scratch: no row has a choice yet
// Who      An item owns every so many rows.
// Memory   A word of each row.
// Numerics Integers.
// Assumes  Fewer than 2^31 rows.
#include "moe/rows/rows.clh"

#define MAP(row) map[row]

KERNEL void moe_clear(global int* restrict map, const struct MoeRowsArgs args) {
#include "operations/moe/rows/clear.h"
}
