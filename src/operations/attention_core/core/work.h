// SPDX-License-Identifier: Apache-2.0
// The work list of packed sequences: which rows and keys an item of it takes. attention/core/work
// makes it from the table of rows; kernels whose rows of a tile are of one sequence read it.
// Read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_ATTENTION_WORK_H
#define TESSERA_OPERATIONS_ATTENTION_WORK_H
#include "operations/attention_core/core/rows_args.h"

// In policy features: there is a list, where kernels with maps have theirs (`map`), in entries of
// four ints. Entry 0 is {items, 0, 0, 0}, item n has entries 1 + 2 n and 2 + 2 n: {sequence, first
// row, rows, first key}, {keys, first common key, end of the common keys, 0}. Of the keys some row
// sees each end; those that are common lie in the interval of every row.
#define POLICY_WORK 0x40000000u

TESSERA_ABI_BEGIN

// A kv head has the rows of its query heads: row r is query row r / pack of head r % pack.
struct AttentionWorkArgs {
  STRUCT(AttentionRowsArgs) rows;
  u32 pack;
  u32 tile;  // rows of an item, at most
  u32 list;  // where it begins in the scratch buffer, in entries of four ints
  u32 least_rows,
      most_rows;  // query rows of a sequence that is in the list; of others another has them
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_WORK_H
