// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the list of a sparse product's blocks: read by C++, OpenCL C and GLSL.
// The products take those of grouped_core/args.h.
#ifndef TESSERA_OPERATIONS_SPARSE_CORE_ARGS_H
#define TESSERA_OPERATIONS_SPARSE_CORE_ARGS_H
#include "operations/grouped_core/args.h"

// What shares a result: the blocks of a row, of a column, or nothing but the block itself.
#define SPARSE_BY_ROW 0u
#define SPARSE_BY_COLUMN 1u
#define SPARSE_BY_BLOCK 2u

// Errors, in the order of the record.
#define SPARSE_OUTSIDE 0u

TESSERA_ABI_BEGIN

// Where a block lies in an operand: row `row` + column `column` + its number times `block`.
struct SparsePlace {
  u32 row;
  u32 column;
  u32 block;
};

// The list: a vector {results, 0, 0, 0}; for each result a vector {its number, first, end, 1} of
// entries; from word `words` on a counter for each result, and from `table` on an entry of two
// words for each block, at an even word, in the order of results: where its terms begin in a, and
// in b.
struct SparseListArgs {
  u32 blocks;
  u32 results;
  u32 by;  // SPARSE_BY_…
  u32 words;
  u32 table;
  u32 index_offset;
  u32 index_step;  // from a block to the next
  u32 index_side;  // from the row to the column
  u32 rows;        // of blocks
  u32 columns;
  u32 masked;  // not 0: there is a mask, in bytes
  STRUCT(SparsePlace) mask;
  STRUCT(SparsePlace) a;
  STRUCT(SparsePlace) b;
  u32 mask_offset;
  u32 errors;  // where the words of this call begin
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_SPARSE_CORE_ARGS_H
