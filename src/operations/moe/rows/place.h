// SPDX-License-Identifier: Apache-2.0
// The row at which a choice has its place. Text for OpenCL C and GLSL: ID(n), SLOT(n) and START(e)
// are what the operands hold, RAISE(kind, index) raises an error.
#ifndef TESSERA_OPERATIONS_MOE_ROWS_PLACE_H
#define TESSERA_OPERATIONS_MOE_ROWS_PLACE_H

// Declares `row`: MOE_NOWHERE of choices that are dropped or wrong. Wrong ones are raised where
// `tells` holds.
#define MOE_PLACE(row, n, tells)                                            \
  i32 row = MOE_NOWHERE;                                                    \
  {                                                                         \
    const i32 expert = ID(n), slot = SLOT(n), all = TO_INT(ARGS(rows));     \
    if (expert != MOE_NOWHERE && slot != MOE_NOWHERE) {                     \
      if (expert < 0 || expert >= TO_INT(ARGS(experts))) {                  \
        if (tells) RAISE(MOE_BAD_EXPERT, n);                                \
      } else {                                                              \
        const i32 start = START(expert);                                    \
        if (slot < 0 || start < 0 || start >= all || slot >= all - start) { \
          if (tells) RAISE(MOE_BAD_SLOT, n);                                \
        } else {                                                            \
          row = start + slot;                                               \
        }                                                                   \
      }                                                                     \
    }                                                                       \
  }

#endif  // TESSERA_OPERATIONS_MOE_ROWS_PLACE_H
