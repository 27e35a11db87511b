// SPDX-License-Identifier: Apache-2.0
// Rows r to r + 3 of a state or of its gradient decay, by names that a kernel's body has: decay,
// what local memory holds for their key dims, which are factors or, where values decay, too,
// logarithms; value_decay. Text for OpenCL C and GLSL.
//
// exp of a log decay above RECUR_MOST_DECAY may be more than a float holds, and an empty state
// times that is NaN. So minus a share of such a decay is held, and rows are multiplied by its
// factor twice, which compilers may not take as its square. The gradient of a decay is the product
// of a state and a gradient: RECUR_DECAY_FIRST may be of the one and RECUR_DECAY_REST, which is 1
// where nothing grows so much, of the other.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_DECAY_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_DECAY_H

#define RECUR_DECAY_ROWS(rows, factors) \
  rows[r] *= (factors).x;               \
  rows[r + 1u] *= (factors).y;          \
  rows[r + 2u] *= (factors).z;          \
  rows[r + 3u] *= (factors).w;
#define RECUR_GROW_ROW(row, factor)            \
  {                                            \
    RECUR_PRECISE FLOAT4 grown = (row)*factor; \
    row = grown * factor;                      \
  }
#define RECUR_GROW_ROWS(rows, factors)      \
  RECUR_GROW_ROW(rows[r], (factors).x)      \
  RECUR_GROW_ROW(rows[r + 1u], (factors).y) \
  RECUR_GROW_ROW(rows[r + 2u], (factors).z) \
  RECUR_GROW_ROW(rows[r + 3u], (factors).w)
#if defined(RECUR_DELTA) || defined(RECUR_NO_GV)
#define RECUR_IF_VALUES_DECAY(rows, share)
#else
#define RECUR_IF_VALUES_DECAY(rows, share)                     \
  if (RECUR_HAS(RECUR_GV)) {                                   \
    rows[r] = share(rows[r], value_decay + decay.x);           \
    rows[r + 1u] = share(rows[r + 1u], value_decay + decay.y); \
    rows[r + 2u] = share(rows[r + 2u], value_decay + decay.z); \
    rows[r + 3u] = share(rows[r + 3u], value_decay + decay.w); \
  } else
#endif
#define RECUR_DECAY_FIRST(rows)                           \
  RECUR_IF_VALUES_DECAY(rows, recur_first) {              \
    FLOAT4 factors = decay;                               \
    if (RECUR_GROWS(decay)) factors = RECUR_FIRST(decay); \
    RECUR_DECAY_ROWS(rows, factors)                       \
  }
#define RECUR_DECAY_REST(rows)                \
  RECUR_IF_VALUES_DECAY(rows, recur_rest)     \
  if (RECUR_GROWS(decay)) {                   \
    const FLOAT4 factors = RECUR_HALF(decay); \
    RECUR_GROW_ROWS(rows, factors)            \
  }
#define RECUR_DECAY(rows)   \
  {                         \
    RECUR_DECAY_FIRST(rows) \
    RECUR_DECAY_REST(rows)  \
  }

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_DECAY_H
