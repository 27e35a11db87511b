// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/forward.cl and forward.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"

if (SCAN_HAS(SCAN_FINAL)) {
#define SCAN_PASS(f)                                                          \
  {                                                                           \
    FLOAT4 given;                                                             \
    SCAN_TAKE_INITIAL(given, f)                                               \
    STORE_FINAL(given, SCAN_STATE(final_state, SCAN_FIRST(f)), SCAN_LEFT(f)); \
  }
#include "operations/selective_scan/empty.h"
}
if (present && span > 0u) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) state[f] = SHARE(SCAN_KEPT(made, span, f));
}
float skip = 0.0f;
if (present && SCAN_HAS(SCAN_D)) skip = LOAD_D(ARGS(d_offset) + channel * ARGS(d_stride));

for (u32 token = first; token < last; ++token) {
#include "operations/selective_scan/enter.h"
  // SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
  float share = TO_FLOAT(ARGS(features) >> 31);
  float u = share;
  if (present && held) {
    SCAN_TAKE_WIDTH(token)
    u = LOAD_U(SCAN_ROW(u, token));
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      const u32 left = SCAN_LEFT(f);
      if (left > 0u) {
        const FLOAT4 b = LOAD_B(SCAN_FACTOR(b, token, SCAN_FIRST(f)), left);
        const FLOAT4 c = LOAD_C(SCAN_FACTOR(c, token, SCAN_FIRST(f)), left);
        state[f] = SPACE_EXP4(width * rate[f]) * state[f] + width * u * b;
        share += SCAN_DOT(state[f], c, left);
      }
    }
  }
  SUMS(item) = share;
  SCAN_BARRIER();
  if (present && part == 0u) {
    for (u32 other = 1u; other < WG_Y; ++other) share += SUMS(other * WG_X + lane);
    if (held && SCAN_HAS(SCAN_D)) share += skip * u;
    if (held && SCAN_HAS(SCAN_Z)) share *= space_silu(LOAD_Z(SCAN_ROW(z, token)));
    STORE_OUTPUT(share, SCAN_ROW(result, token));
  }
  SCAN_BARRIER();
  if (present && held && SCAN_HAS(SCAN_FINAL) && token + 1u == end) {
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      if (SCAN_LEFT(f) > 0u)
        STORE_FINAL(state[f], SCAN_STATE(final_state, SCAN_FIRST(f)), SCAN_LEFT(f));
    }
  }
}
