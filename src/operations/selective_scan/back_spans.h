// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/back_spans.cl and back_spans.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"
#define SCAN_TAKES_U 0
#include "operations/selective_scan/prepare.h"

#define slope state
if (SCAN_HAS(SCAN_PACKED) && first < last) SPACE_FIND(first)
if (SCAN_IS_WHOLE) {
  SCAN_LEAVE_WHOLE
  SCAN_EACH_TOKEN for (u32 back = 0u; back < SPAN; ++back) {
    const u32 i = SPAN - 1u - back;
    const FLOAT4 step = BACK_STEP(i, lane);
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) slope[f] =
        SPACE_EXP2_4(step.x * rate[f]) * (slope[f] + step.z * FACTOR(i, 1u, f));
  }
  if (first == begin) {
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) slope[f] = zero;
  }
} else {
  for (u32 behind = last; behind > first; --behind) {
    const u32 token = behind - 1u, i = token - first;
#include "operations/selective_scan/leave.h"
    if (present && held) {
      const FLOAT4 step = BACK_STEP(i, lane);
      UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
        slope[f] = SPACE_EXP2_4(step.x * rate[f]) * (slope[f] + step.z * FACTOR(i, 1u, f));
        if (token == begin) slope[f] = zero;
      }
    }
  }
}
if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(back, span, f)) = slope[f];
}
