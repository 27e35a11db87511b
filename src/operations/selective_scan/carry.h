// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/carry.cl and carry.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"

// The factor of a span in four parts: its product with a state is a float where the factor is none.
// A state of 0 stays one.
#define SCAN_CARRIED(v, q) ((v) == 0.0f ? 0.0f : (v) * (q) * (q) * (q) * (q))
const u32 batch = unit;
if (column < channels && batch < ARGS(batches)) {
  for (u32 i = 0u; i < ARGS(spans); ++i) {
    const u32 span = SCAN_HAS(SCAN_BACK) ? ARGS(spans) - 1u - i : i;
    const float quarter = 0.25f * NUMBER(SCAN_SUM(span));
    const bool counts = NUMBER(SCAN_SUM(span) + 1u) != 0.0f;
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      const u32 at = SCAN_HAS(SCAN_BACK) ? SCAN_KEPT(back, span, f) : SCAN_KEPT(made, span, f);
      FLOAT4 now = SHARE(at);
      SHARE(at) = state[f];
      if (counts) {
        const FLOAT4 q = SPACE_EXP2_4(quarter * rate[f]);
        now.x += SCAN_CARRIED(state[f].x, q.x);
        now.y += SCAN_CARRIED(state[f].y, q.y);
        now.z += SCAN_CARRIED(state[f].z, q.z);
        now.w += SCAN_CARRIED(state[f].w, q.w);
      }
      state[f] = now;
    }
  }
}
