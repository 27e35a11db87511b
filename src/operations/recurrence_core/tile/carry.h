// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/carry.cl and carry.comp. Text for OpenCL C and GLSL.

// A factor that is too small for a float leaves nothing of a state but infinity.
#define RECUR_CARRIED(x) \
  (factor == RECUR_LEAST_FACTOR && (x) < 3.4028234e38f && (x) > -3.4028234e38f ? 0.0f : (x)*factor)

const u32 pace = GROUP_COUNT_X * TO_U32(WG_X);
for (u32 i = GROUP_ID_X * TO_U32(WG_X) + LOCAL_ID_X; i < ARGS(vectors); i += pace) {
  const u32 item = i % ARGS(items), r = i / ARGS(items) % ARGS(rows);
  const u32 unit = i / ARGS(items) / ARGS(rows), units = ARGS(vectors) / ARGS(items) / ARGS(rows);
  const u32 k = item / ARGS(lanes) * ARGS(rows) + r;
  FLOAT4 state = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  for (u32 span = 0u; span < ARGS(spans); ++span) {
    const u32 at = ARGS(span_states) + span * ARGS(vectors) + i;
    FLOAT4 made = state;
    float factor = 0.0f;
    if (span + 1u < ARGS(spans)) {  // nobody asks what the last one makes
      made = SCRATCH(at);
      factor = SCRATCH_FLOAT(ARGS(span_factors) + (span * units + unit) * ARGS(factors) + k);
    }
    SCRATCH(at) = state;
    state.x = RECUR_CARRIED(state.x) + made.x;
    state.y = RECUR_CARRIED(state.y) + made.y;
    state.z = RECUR_CARRIED(state.z) + made.z;
    state.w = RECUR_CARRIED(state.w) + made.w;
  }
}
