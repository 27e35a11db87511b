// SPDX-License-Identifier: Apache-2.0
// What     Rows of a tensor to the rows of another, as lists in scratch say, bit by bit; moved ones leave zeros
// Who      LANES items own a row at a time, an item every LANES-th unit of it. Groups (x, 1), where the grid has any, do
//          as much for the operands behind the list.
// Memory   Each row once, by units of UNIT bytes.
// Numerics Bits are copied.
// Assumes  No two rows have one target, and no row is the target of another. Fewer than 2^31 rows; offsets and strides
//          below 2^32.
#include "lib/prelude.clh"
#include "operations/kv_cache/args.h"

#if UNIT == 16
typedef uint4 unit;
#elif UNIT == 4
typedef uint unit;
#elif UNIT == 2
typedef ushort unit;
#else
typedef uchar unit;
#endif

#define INDEX size_t
#define LOCAL_ID ((uint)get_local_id(0))
#define GROUP_ID ((uint)get_group_id(0))
#define GROUP_COUNT ((uint)get_num_groups(0))
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define ROW_AT(at, n) \
  ((at).offset + (size_t)((n) / (at).split) * (at).outer + (size_t)((n) % (at).split) * (at).inner + \
   (size_t)a * (at).axis0 + (size_t)b * (at).axis1)
#define COPY_UNIT(from, to) to_units[to] = from_units[from]
#define CLEAR_FROM(at) from_units[at] = (unit)(0)
#define CLEAR_TO(at) to_units[at] = (unit)(0)

#define UNITS units_of_row
#define FROM from_rows
#define TO to_rows

KERNEL void cache_copy(global unit* from_units, global unit* to_units, const global int* list,
                       global unit* more_from_units, global unit* more_to_units, const struct CacheCopyArgs args) {
  const bool more = get_group_id(1) != 0;
  const struct CacheRows from_rows = more ? args.more_from : args.from, to_rows = more ? args.more_to : args.to;
  const uint units_of_row = more ? args.more_units : args.units;
  if (more) from_units = more_from_units, to_units = more_to_units;
#include "operations/kv_cache/rows/copy.h"
}
