// SPDX-License-Identifier: Apache-2.0
// Behind span.h, on the way back: a span's operands, asked for at once and left in work-group
// memory. Of a channel and token a step: its width in units of log(2), what it adds to states, the
// gradient before the gate, and u. An item prepares its channel's tokens `part`, `part` + WG_Y, …,
// and elements of b and c. SCAN_TAKES_U says whether u and b count. Text for OpenCL C and GLSL.

const u32 states = ARGS(states);
const u32 near = min(column, channels - 1u) + branch * channels;
const bool full = states == SCAN_STATES;
float own_raw[SCAN_OWN_OF(SPAN)], own_width[SCAN_OWN_OF(SPAN)], own_u[SCAN_OWN_OF(SPAN)];
float own_z[SCAN_OWN_OF(SPAN)], own_given[SCAN_OWN_OF(SPAN)], own_gradient[SCAN_OWN_OF(SPAN)];
if (first < last) {
  UNROLL for (u32 i = 0u; i < SCAN_OWN_OF(SPAN); ++i) {
    const u32 at = min(first + SCAN_TOKEN(i), last - 1u);
    own_raw[i] = SCAN_WIDEN(LOAD_DELTA_BITS(SCAN_ROW_OF(delta, near) + at * ARGS(delta.token)));
    own_given[i] =
        SCAN_WIDEN(LOAD_GRADIENT_BITS(SCAN_ROW_OF(result, near) + at * ARGS(result.token)));
    own_u[i] = own_z[i] = 0.0f;
#if SCAN_TAKES_U
    own_u[i] = SCAN_WIDEN(LOAD_U_BITS(SCAN_ROW_OF(u, near) + at * ARGS(u.token)));
#endif
    if (SCAN_HAS(SCAN_Z))
      own_z[i] = SCAN_WIDEN(LOAD_Z_BITS(SCAN_ROW_OF(z, near) + at * ARGS(z.token)));
  }
  UNROLL for (u32 i = 0u; i < SCAN_TAKEN_OF(SPAN); ++i) {
    const u32 at = min(first + SCAN_TOKEN_OF(i), last - 1u);
    const bool is_state = full || (i * SCAN_ITEMS + item) % SCAN_STATES < states;
    if (SCAN_TOKEN_OF(i) < SPAN) {
      const float c = SCAN_WIDEN(LOAD_C_BITS(SCAN_FACTOR(c, at, SCAN_STATE_OF(i))));
      FACTOR_ELEMENT(SCAN_ELEMENT_OF(i, 1u)) = is_state ? c : 0.0f;
#if SCAN_TAKES_U
      const float b = SCAN_WIDEN(LOAD_B_BITS(SCAN_FACTOR(b, at, SCAN_STATE_OF(i))));
      FACTOR_ELEMENT(SCAN_ELEMENT_OF(i, 0u)) = is_state ? b : 0.0f;
#endif
    }
  }
  UNROLL for (u32 i = 0u; i < SCAN_OWN_OF(SPAN); ++i) {
    own_raw[i] += bias;
    own_width[i] = SCAN_HAS(SCAN_SOFTPLUS) ? space_softplus(own_raw[i]) : own_raw[i];
    own_gradient[i] = SCAN_HAS(SCAN_Z) ? own_given[i] * space_silu(own_z[i]) : own_given[i];
    if (SCAN_TOKEN(i) < SPAN)
      BACK_STEP(SCAN_TOKEN(i), lane) = MAKE_FLOAT4(
          own_width[i] * SPACE_LOG2_E, own_width[i] * own_u[i], own_gradient[i], own_u[i]);
  }
}
SPACE_BARRIER();
