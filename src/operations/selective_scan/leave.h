// SPDX-License-Identifier: Apache-2.0
// Before a token, on the way back: a sequence's last one finds the gradient of its final state, in
// `slope`. Text for OpenCL C and GLSL.

if (SCAN_HAS(SCAN_PACKED) && (anew || token < begin)) {
  SPACE_FIND(token)
  anew = false;
}
if (present && held && token + 1u == end) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
    slope[f] = zero;
    if (SCAN_HAS(SCAN_FINAL) && SCAN_LEFT(f) > 0u)
      slope[f] = LOAD_DFINAL(SCAN_STATE(final_state, SCAN_FIRST(f)), SCAN_LEFT(f));
  }
}
