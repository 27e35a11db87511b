// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels that fill caches, and how they number rows: read by C++,
// OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_KV_CACHE_ARGS_H
#define TESSERA_OPERATIONS_KV_CACHE_ARGS_H
#include "abi/shared.h"

#define CACHE_NOWHERE (-1)         // in a list: this row has no place
#define CACHE_NO_LIST 0xffffffffu  // in place of a list: row n is at n

// What becomes of the scales of quantised rows.
#define CACHE_SCALE_GIVEN 0  // they are read
#define CACHE_SCALE_OWN 1    // each row makes its own
#define CACHE_SCALE_PEAK \
  2  // the largest magnitude of each row goes to scratch, and no codes are made

TESSERA_ABI_BEGIN

// Where rows lie. Row (n, a, b) is at offset + n / split * outer + n % split * inner + a * axis0 +
// b * axis1: n is a slot of a pool of pages of `split` slots, or a page, a and b are heads and the
// like. In elements, or in the units that a kernel copies.
struct CacheRows {
  u32 offset;
  u32 split;
  u32 outer;
  u32 inner;
  u32 axis0;
  u32 axis1;
};

struct CacheCopyArgs {
  u32 rows;
  u32 axis0;  // sizes
  u32 axis1;
  u32 units;      // of a row
  u32 from_list;  // where the n of the rows' sources begin in scratch, or CACHE_NO_LIST
  u32 to_list;
  u32 moves;  // not 0: rows of no source are cleared, and sources behind the copy
  STRUCT(CacheRows) from;
  STRUCT(CacheRows) to;
  // Of as many rows of other operands, which work-groups (n, 1) copy; the values beside keys.
  u32 more_units;
  STRUCT(CacheRows) more_from;
  STRUCT(CacheRows) more_to;
};

// Rows (n, head) of floats and of codes.
struct CacheCodesArgs {
  u32 rows;
  u32 heads;
  u32 dim;
  u32 to_list;
  f32 largest;  // code
  STRUCT(CacheRows) floats;
  STRUCT(CacheRows) codes;
  STRUCT(CacheRows) scale;
};

// Scale e is made of `count` rows, runs of neighbours: row i of them is first(e) + i / run * step +
// i % run. Rows are numbered (page, head, slot).
struct CacheScalesArgs {
  u32 count;
  u32 run;
  u32 step;        // from one run to the next
  u32 first_step;  // first(e) = e * first_step
  f32 largest;     // code
  u32 offset;
  u32 stride;  // from one scale to the next
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_KV_CACHE_ARGS_H
