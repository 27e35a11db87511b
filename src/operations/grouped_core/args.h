// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels of grouped products: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_GROUPED_CORE_ARGS_H
#define TESSERA_OPERATIONS_GROUPED_CORE_ARGS_H
#include "abi/shared.h"

// Bits of `features`: vectors of four elements of a or b that lie at multiples of four, along the
// axis that is summed or along the other; what is added to sums.
#define GROUPED_A_BY_TERMS 1u
#define GROUPED_A_BY_ROWS 2u
#define GROUPED_B_BY_TERMS 4u
#define GROUPED_B_BY_COLUMNS 8u
#define GROUPED_ADDEND 16u
// Scales of a and b; whether MATMUL_BLOCK rows or columns share one; whether blocks of terms are
// scaled, else the sums.
#define GROUPED_SCALE_A 32u
#define GROUPED_SCALE_B 64u
#define GROUPED_SCALE_ROWS 128u
#define GROUPED_SCALE_COLUMNS 256u
#define GROUPED_SCALE_TERMS 512u
#define GROUPED_WHOLE 1024u  // the result is the sums themselves, integers of 32 bits

// Values of the constant RAGGED: groups have rows of a, or terms, of their own; or blocks of terms,
// which a table says the places of.
#define GROUPED_ROWS 0
#define GROUPED_TERMS 1
#define GROUPED_BLOCKS 2

// Errors, in the order of the record.
#define GROUPED_NEGATIVE_SIZE 0u
#define GROUPED_BEYOND_ROWS 1u

TESSERA_ABI_BEGIN

// Element (row, column) of group g: offset + g group + row `row` + column `column`, in elements.
struct GroupedView {
  u32 offset;
  u32 row;
  u32 column;
  u32 group;
};

// Where a scale begins, and the steps between rows or columns, blocks of terms, and groups.
struct GroupedRowScale {
  u32 offset;
  u32 row;
  u32 term;
};
struct GroupedColumnScale {
  u32 offset;
  u32 column;
  u32 term;
  u32 group;
};

// Ragged rows: result[i] = a[i] b of the group of row i, or the addend where it has none. Ragged
// terms: result of a group = a b over the terms of the group, and the addend.
struct GroupedArgs {
  u32 m;  // where terms are ragged: rows
  u32 n;
  u32 k;         // where rows are ragged: terms
  u32 features;  // GROUPED_…
  u32 addend_type;
  u32 result_type;
  u32 panels;                  // CPUs: of an item
  u32 table;                   // where the table of blocks begins in the list, in words
  STRUCT(GroupedView) a;       // [m, k]
  STRUCT(GroupedView) b;       // [k, n]
  STRUCT(GroupedView) addend;  // [m, n]
  STRUCT(GroupedView) result;
  STRUCT(GroupedRowScale) scale_a;
  STRUCT(GroupedColumnScale) scale_b;
};

// The work list: a vector {items, 0, 0, 0}, then an item each: {group, first, end, 1}. Of ragged
// terms an item is a group; of ragged rows a tile, which `tile` rows at most and the group end.
// Rows of no group that is held are in items {0, first, end, 0}. Of blocks an item is a group, its
// entries of the table from first to end: two words each, where the k terms of a block begin in a,
// and in b.
struct GroupedListArgs {
  u32 sizes;  // offset of group_sizes
  u32 sizes_step;
  u32 groups;  // of group_sizes
  u32 first;   // that is held
  u32 held;
  u32 rows;
  u32 tile;    // 0: terms are ragged
  u32 ends;    // where the ends of groups lie behind the list, in words
  u32 errors;  // where the words of this call begin
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_GROUPED_CORE_ARGS_H
