// SPDX-License-Identifier: Apache-2.0
// What     The blocks of a sparse product, in the order of the results that they are of, and where they lie in operands.
// Who      One work-group. Item i takes blocks i, i + WG_X, …, and results in the same way; WG_X blocks find their places at once.
// Memory   The indices twice, 20 bytes for each result and 8 for each block.
// Numerics Whole numbers. Blocks outside, and those that the mask leaves out, are of no result.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/errors.clh"
#include "operations/sparse_core/args.h"

#define LOCAL_ID_X ((uint)get_local_id(0))
#define ARGS(name) (args.name)
#define INDEX(at) indices[at]
#define MASK(at) load_byte(mask, at)
#define RAISE(error, index) raise_error(errors, ARGS(errors), error, index)
#define LIST(i) list[i]
#define WORD(i) ((volatile global uint*)list)[i]
#define COUNT_UP(i) atomic_inc((volatile global uint*)list + (i))
#define SPACE(i) space[i]
#define MAKE_UINT4(x, y, z, w) ((uint4)(x, y, z, w))
#define GROUP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define MEMORY_BARRIER() barrier(CLK_GLOBAL_MEM_FENCE)

KERNEL void sparse_list(const global int* restrict indices, const global uchar* restrict mask, global uint4* list,
                        volatile global uint* errors, const struct SparseListArgs args) {
  local uint space[2 * WG_X];
#include "operations/sparse_core/list.h"
}
