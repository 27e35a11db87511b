// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/back_spans.cl and back_spans.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"

#define slope state
for (u32 behind = last; behind > first; --behind) {
  const u32 token = behind - 1u;
#include "operations/selective_scan/leave.h"
  if (present && held) {
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      if (SCAN_LEFT(f) > 0u) {
        const FLOAT4 c = LOAD_C(SCAN_FACTOR(c, token, SCAN_FIRST(f)), SCAN_LEFT(f));
        slope[f] = SCAN_DECAY(width, f) * (slope[f] + gradient * c);
      }
      if (token == begin) slope[f] = zero;
    }
  }
}
if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(back, span, f)) = slope[f];
}
