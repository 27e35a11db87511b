// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/spans.cl and spans.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"
#define SCAN_MAKES_OUTPUTS 0
#include "operations/selective_scan/blocks.h"

if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(made, span, f)) = state[f];
  if (part == 0u) {
    NUMBER(SCAN_SUM(span)) = sum;
    NUMBER(SCAN_SUM(span) + 1u) = counts;
  }
}
