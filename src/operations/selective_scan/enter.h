// SPDX-License-Identifier: Apache-2.0
// Before a token, forward: a sequence's first one finds its initial state. Text for OpenCL C and
// GLSL.

if (SCAN_HAS(SCAN_PACKED) && (anew || token >= end)) {
  SPACE_FIND(token)
  anew = false;
}
if (present && held && token == begin) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SCAN_TAKE_INITIAL(state[f], f)
}
