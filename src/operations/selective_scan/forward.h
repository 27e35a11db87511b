// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/forward.cl and forward.comp. Text for OpenCL C and GLSL.

#define SCAN_MAKES_OUTPUTS 1
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
#include "operations/selective_scan/blocks.h"
