// SPDX-License-Identifier: Apache-2.0
// What     The groups of a grouped product on Hopper, and the tensor maps that its copies read.
// Who      One work-group. Items share the groups, twice: for where they end, and for their maps.
// Memory   The sizes once, 16 bytes for each group; 128 bytes for each map.
// Numerics Whole numbers. A list of groups as of matmul/grouped/list, whose second word, a counter of tiles, is 0.
// Assumes  sm_90a (ptx_promotion.hpp); fewer than 2^31 rows.
#include "lib/errors.clh"
#include "abi/storage.h"
#define WARPGROUPS 2  // of the kernel that reads the maps
#include "matmul/hopper/maps.clh"
#include "operations/grouped_core/hopper/geometry.h"

#define LOCAL_ID_X ((uint)get_local_id(0))
#define ARGS(name) (args.list.name)
#define SIZE(g) sizes[ARGS(sizes) + (g) * ARGS(sizes_step)]
#define RAISE(error, g) raise_error(errors, ARGS(errors), error, g)
#define END(g) ((global uint*)list)[ARGS(ends) + (g)]
#define LIST(i) list[i]
#define SPACE(i) space[i]
#define MAKE_UINT4(x, y, z, w) ((uint4)(x, y, z, w))
#define GROUP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define MEMORY_BARRIER() barrier(CLK_GLOBAL_MEM_FENCE)

#if RAGGED == GROUPED_TERMS
// A map like the one at `from`, with `terms` terms, by way of `in`.
INLINE void end_map(uint from, bool by_terms, uint terms, uint in, global uint4* to) {
  UNROLL for (uint i = 0; i < TENSOR_MAP_BYTES; i += 16) store_local4(in + i, load_local4(from + i));
  const uint map = in;
  if (by_terms) {
    TENSOR_MAP_REPLACE32("global_dim", "0, ", terms);
  } else {
    TENSOR_MAP_REPLACE32("global_dim", "2, ", terms);
  }
  UNROLL for (uint i = 0; i < TENSOR_MAP_BYTES; i += 16) to[i / 16] = load_local4(in + i);
}
#endif

KERNEL void grouped_hopper_list(const global int* restrict sizes, global uint4* list, volatile global uint* errors,
                                const global uchar* a, const global uchar* b, const global uchar* result,
                                const struct GroupedPrepareArgs args) {
  local uint space[2 * WG_X];
  local uchar map_memory[(WG_X + GROUPED_MAPS) * TENSOR_MAP_BYTES] __attribute__((aligned(128)));
  const uint memory = LOCAL_ADDRESS(map_memory);
  global uint* maps = (global uint*)list + args.product.maps;
  // A result of any place has none: its strides may be such as no map can hold.
  if (LOCAL_ID_X < (RESULT == HOPPER_ANY_RESULT ? GROUPED_MAPS - 1 : GROUPED_MAPS)) {
    const TensorMap map = map_of_number(LOCAL_ID_X, a, b, result, 0, &args.product);
    make_tensor_map(&map, memory + LOCAL_ID_X * TENSOR_MAP_BYTES, maps + LOCAL_ID_X * HOPPER_MAP_FLOATS);
  }
  {
#include "operations/grouped_core/list.h"
  }
#if RAGGED == GROUPED_TERMS
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const uint in = memory + (GROUPED_MAPS + LOCAL_ID_X) * TENSOR_MAP_BYTES;
  for (uint i = LOCAL_ID_X; i < 2 * ARGS(held); i += WG_X) {
    const uint of_b = i % 2, terms = max(list[1 + i / 2].s2, 1u);
    end_map(memory + of_b * TENSOR_MAP_BYTES, of_b ? B_BY_TERMS : A_BY_TERMS, terms, in,
            (global uint4*)(maps + (GROUPED_MAPS + i) * HOPPER_MAP_FLOATS));
  }
#endif
}
