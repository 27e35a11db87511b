// SPDX-License-Identifier: Apache-2.0
// What     The work list of a grouped product: tiles of rows that are of one group, or groups.
// Who      One work-group. Item i takes groups i, i + WG_X, …, twice: for where they end, and for their tiles.
// Memory   The sizes once, 4 bytes for each group, 16 for each tile.
// Numerics Whole numbers. The list is in the order of rows, and every row is in one item of it, whatever the sizes say:
//          negative ones count 0, ends are cut to the rows.
// Assumes  Fewer than 2^31 rows.
#include "lib/errors.clh"
#include "operations/grouped_core/args.h"

#define LOCAL_ID_X ((uint)get_local_id(0))
#define ARGS(name) (args.name)
#define SIZE(g) sizes[ARGS(sizes) + (g) * ARGS(sizes_step)]
#define RAISE(error, g) raise_error(errors, ARGS(errors), error, g)
#define END(g) ((global uint*)list)[ARGS(ends) + (g)]
#define LIST(i) list[i]
#define SPACE(i) space[i]
#define MAKE_UINT4(x, y, z, w) ((uint4)(x, y, z, w))
#define GROUP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define MEMORY_BARRIER() barrier(CLK_GLOBAL_MEM_FENCE)

KERNEL void grouped_list(const global int* restrict sizes, global uint4* list, volatile global uint* errors,
                         const struct GroupedListArgs args) {
  local uint space[2 * WG_X];
#include "operations/grouped_core/list.h"
}
