// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/carry.cl and carry.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"

// The factor of a span in four parts: its product with a state is a float where the factor is none.
// A state of 0 stays one.
#define SCAN_CARRIED(v, q) ((v) == 0.0f ? 0.0f : (v) * (q) * (q) * (q) * (q))
#define SCAN_AT(i) (SCAN_HAS(SCAN_BACK) ? spans - 1u - (i) : (i))
#define SCAN_PLACE(span, f) \
  (SCAN_HAS(SCAN_BACK) ? SCAN_KEPT(back, span, f) : SCAN_KEPT(made, span, f))
const u32 batch = unit, spans = ARGS(spans);
if (column < channels && batch < ARGS(batches)) {
  for (u32 from = 0u; from < spans; from += SCAN_CARRIED_AT_ONCE) {
    FLOAT4 asked[SCAN_CARRIED_AT_ONCE * SCAN_FOURS];
    float quarter[SCAN_CARRIED_AT_ONCE], counts[SCAN_CARRIED_AT_ONCE];
    UNROLL for (u32 i = 0u; i < SCAN_CARRIED_AT_ONCE; ++i) {
      const u32 span = SCAN_AT(min(from + i, spans - 1u));
      quarter[i] = 0.25f * NUMBER(SCAN_SUM(span));
      counts[i] = NUMBER(SCAN_SUM(span) + 1u);
      UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) asked[i * SCAN_FOURS + f] =
          SHARE(SCAN_PLACE(span, f));
    }
    UNROLL for (u32 i = 0u; i < SCAN_CARRIED_AT_ONCE; ++i) {
      if (from + i < spans) {
        UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
          FLOAT4 now = asked[i * SCAN_FOURS + f];
          SHARE(SCAN_PLACE(SCAN_AT(from + i), f)) = state[f];
          if (counts[i] != 0.0f) {
            const FLOAT4 q = SPACE_EXP2_4(quarter[i] * rate[f]);
            now.x += SCAN_CARRIED(state[f].x, q.x);
            now.y += SCAN_CARRIED(state[f].y, q.y);
            now.z += SCAN_CARRIED(state[f].z, q.z);
            now.w += SCAN_CARRIED(state[f].w, q.w);
          }
          state[f] = now;
        }
      }
    }
  }
}
