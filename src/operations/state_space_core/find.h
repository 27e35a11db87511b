// SPDX-License-Identifier: Apache-2.0
// Which sequence a token belongs to, by names that a kernel's body has: sequence, begin, end, held.
// ORDERED(i) are the boundaries that common/boundaries left in scratch. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_STATE_SPACE_CORE_FIND_H
#define TESSERA_OPERATIONS_STATE_SPACE_CORE_FIND_H

// Tokens of no sequence are not held; [begin, end) are those beside them then.
#define SPACE_FIND(given)                                         \
  {                                                               \
    u32 low = 0u, high = ARGS(sequences) + 1u;                    \
    while (low < high) {                                          \
      const u32 middle = (low + high) / 2u;                       \
      if (ORDERED(middle) <= TO_INT(given)) {                     \
        low = middle + 1u;                                        \
      } else {                                                    \
        high = middle;                                            \
      }                                                           \
    }                                                             \
    held = low > 0u && low <= ARGS(sequences);                    \
    sequence = held ? low - 1u : 0u;                              \
    begin = low > 0u ? TO_U32(ORDERED(low - 1u)) : 0u;            \
    end = low <= ARGS(sequences) ? TO_U32(ORDERED(low)) : tokens; \
  }

#endif  // TESSERA_OPERATIONS_STATE_SPACE_CORE_FIND_H
