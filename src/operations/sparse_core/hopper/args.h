// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of sparse products on Hopper: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_SPARSE_CORE_HOPPER_ARGS_H
#define TESSERA_OPERATIONS_SPARSE_CORE_HOPPER_ARGS_H
#include "operations/grouped_core/args.h"
#include "operations/matmul_core/core/args.h"
#include "operations/sparse_core/args.h"

#define SPARSE_MOST_SORTED 2048  // results, whose counters are in local memory

TESSERA_ABI_BEGIN

// The product: a is a block, turned, whose m and k are those of the whole sparse matrix, batch2 the
// step from a block to the next; b is the dense matrix. The table has two words for each block: its
// first term, and its number.
struct SparseHopperArgs {
  STRUCT(MatmulArgs) product;
  u32 rows;   // of a block
  u32 terms;  // of a block
  u32 results;
  u32 blocks;
  u32 table;  // where it begins in scratch, in words
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_SPARSE_CORE_HOPPER_ARGS_H
