// SPDX-License-Identifier: Apache-2.0
// Sequences without tokens pass their state on, or its gradient back: SCAN_PASS(n, left) copies.
// Text for OpenCL C and GLSL.

if (present && span == 0u) {
  const u32 some = SCAN_HAS(SCAN_PACKED) ? 0u : batch;
  const u32 behind = SCAN_HAS(SCAN_PACKED) ? ARGS(sequences) : batch + 1u;
  for (u32 s = some; s < behind; ++s) {
    bool is_empty = tokens == 0u;
    if (SCAN_HAS(SCAN_PACKED)) is_empty = ORDERED(s) == ORDERED(s + 1u);
    if (is_empty) {
      sequence = s;
      UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
        if (SCAN_LEFT(f) > 0u) SCAN_PASS(f)
      }
    }
  }
  sequence = batch;
}
