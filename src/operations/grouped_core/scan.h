// SPDX-License-Identifier: Apache-2.0
// Sums over the items of a work-group, in the text that OpenCL C and GLSL share. The language
// brings SPACE(i), 2 WG_X words that the work-group shares, and GROUP_BARRIER; the text `item`.
#ifndef TESSERA_OPERATIONS_GROUPED_CORE_SCAN_H
#define TESSERA_OPERATIONS_GROUPED_CORE_SCAN_H

// Inclusive sums of `value` over the items, at most `most`; `from` tells where they are.
#define GROUPED_SCAN(value, most)                        \
  u32 from = 0u;                                         \
  SPACE(item) = value;                                   \
  for (u32 step = 1u; step < TO_U32(WG_X); step *= 2u) { \
    GROUP_BARRIER();                                     \
    u32 sum = SPACE(from + item);                        \
    if (item >= step) sum += SPACE(from + item - step);  \
    from = TO_U32(WG_X) - from;                          \
    SPACE(from + item) = min(sum, most);                 \
  }                                                      \
  GROUP_BARRIER();

#endif  // TESSERA_OPERATIONS_GROUPED_CORE_SCAN_H
