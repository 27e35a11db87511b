// SPDX-License-Identifier: Apache-2.0
// What     The list of matmul/sparse/list, with the results of most blocks first: what is left at the end is short.
// Who      A work-group lists the blocks of one result; its items take blocks as they are stored, WG_X at a time.
// Memory   The indices twice for each result, from a cache; counters of all results in local memory.
// Numerics Whole numbers. Blocks outside, and those that the mask leaves out, are of no result.
// Assumes  At most SPARSE_MOST_SORTED results, operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/errors.clh"
#include "operations/sparse_core/hopper/args.h"
#include "operations/sparse_core/block.h"

#define ARGS(name) (args.name)
#define INDEX(at) indices[at]
#define MASK(at) load_byte(mask, at)

KERNEL void sparse_hopper_list(const global int* restrict indices, const global uchar* restrict mask, global uint4* list,
                               volatile global uint* errors, const struct SparseListArgs args) {
  local uint of_result[SPARSE_MOST_SORTED], before, rank, votes[WG_X / 32];
  const uint item = (uint)get_local_id(0), result = (uint)get_group_id(0), blocks = args.blocks, by = args.by;
  for (uint i = item; i < args.results; i += WG_X) of_result[i] = 0;
  if (item == 0) before = rank = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint e = item; e < blocks; e += WG_X) {
    SPARSE_BLOCK(e)
    if (!inside && result == 0) raise_error(errors, args.errors, SPARSE_OUTSIDE, 2 * e + (row_inside ? 1 : 0));
    if (counts) atomic_inc(&of_result[SPARSE_RESULT(e)]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint count = of_result[result];
  for (uint i = item; i < args.results; i += WG_X) {
    if (i < result) atomic_add(&before, of_result[i]);
    if (of_result[i] > count || (of_result[i] == count && i < result)) atomic_inc(&rank);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint place = before;
  if (item == 0) list[1 + rank] = (uint4)(result, place, place + count, 1);
  if (item == 0 && result == 0) list[0] = (uint4)(args.results, 0, 0, 0);
  for (uint base = 0; base < blocks; base += WG_X) {
    if (item < WG_X / 32) votes[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint e = base + item;
    bool is_own = false;
    uint2 entry = (uint2)(0);
    if (e < blocks) {
      SPARSE_BLOCK(e)
      is_own = counts && SPARSE_RESULT(e) == result;
      entry = (uint2)(SPARSE_STEPS(a), SPARSE_STEPS(b));
    }
    if (is_own) atomic_or(&votes[item / 32], 1u << item % 32);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own = place;
    for (uint i = 0; i < WG_X / 32; ++i) {
      const uint here = popcount(votes[i]);
      if (i < item / 32) own += here;
      place += here;
    }
    own += popcount(votes[item / 32] & ((1u << item % 32) - 1));
    if (is_own) ((global uint2*)((global uint*)list + args.table))[own] = entry;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
