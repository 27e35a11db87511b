// SPDX-License-Identifier: Apache-2.0
// A block of a sparse matrix, in the text that OpenCL C and GLSL share. The language brings
// INDEX(at) and MASK(at), the text `by`.
#ifndef TESSERA_OPERATIONS_SPARSE_CORE_BLOCK_H
#define TESSERA_OPERATIONS_SPARSE_CORE_BLOCK_H

#define SPARSE_STEPS(place) \
  (TO_U32(row) * ARGS(place).row + TO_U32(column) * ARGS(place).column + e * ARGS(place).block)
// Names where block e is and whether it counts.
#define SPARSE_BLOCK(e)                                                            \
  const u32 index = ARGS(index_offset) + (e)*ARGS(index_step);                     \
  const i32 row = INDEX(index), column = INDEX(index + ARGS(index_side));          \
  const bool row_inside = row >= 0 && TO_U32(row) < ARGS(rows);                    \
  const bool inside = row_inside && column >= 0 && TO_U32(column) < ARGS(columns); \
  bool counts = inside;                                                            \
  if (inside && ARGS(masked) != 0u) counts = MASK(ARGS(mask_offset) + SPARSE_STEPS(mask)) != 0u;
// The result that block e is of.
#define SPARSE_RESULT(e) \
  (by == SPARSE_BY_ROW ? TO_U32(row) : by == SPARSE_BY_COLUMN ? TO_U32(column) : (e))

#endif  // TESSERA_OPERATIONS_SPARSE_CORE_BLOCK_H
