// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/spans.cl and spans.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"

float sum = 0.0f, counts = 1.0f;
for (u32 token = first; token < last; ++token) {
#include "operations/selective_scan/enter.h"
  if (present && held) {
    if (token == begin) counts = 0.0f;
    SCAN_TAKE_WIDTH(token)
    const float u = LOAD_U(SCAN_ROW(u, token));
    sum += width;
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      if (SCAN_LEFT(f) > 0u)
        state[f] = SPACE_EXP4(width * rate[f]) * state[f] +
                   width * u * LOAD_B(SCAN_FACTOR(b, token, SCAN_FIRST(f)), SCAN_LEFT(f));
    }
  }
}
if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(made, span, f)) = state[f];
  if (part == 0u) {
    NUMBER(SCAN_SUM(span)) = sum;
    NUMBER(SCAN_SUM(span) + 1u) = counts;
  }
}
