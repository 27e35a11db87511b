// SPDX-License-Identifier: Apache-2.0
// What     A selective scan: state = exp(step a) state + step b u, output = state c + d u, times silu(z).
// Who      A work-group is one item and owns LANES channels of some batch entries; it takes the tokens in order.
// Memory   Rows once; b and c once for each tile of channels.
// Numerics Float; sums over states four by four; one rounding of each output.
// Assumes  Operands below 2^31 elements, up to STATES states; common/boundaries has run for packed sequences.
#include "state_space/cpu/scan.clh"

SCAN_ALL_STEPS(steps, true)

KERNEL void selective_scan_forward_cpu(
    const global void* restrict u_elements,
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict b_elements,
    const global void* restrict c_elements,
    const global void* restrict d_elements,
    const global void* restrict z_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    global void* restrict result_elements,
    global void* restrict final_elements,
    const global float* restrict scratch,
    const struct ScanArgs args) {
  SCAN_OWN
  const uint from = share * args.span, behind = min(from + args.span, args.batches);
  if (from >= behind) return;
  ScanTile tile;
  ScanFactorRows rows;
  floatv state[VECTORS * STATES];
  SCAN_LOAD_TILE

  for (uint batch = from; batch < behind; ++batch) {
    uint sequence = batch, begin = 0u, end = tokens;
    bool held = true;
    for (uint token = 0u; token < tokens;) {
      if (SCAN_HAS(SCAN_PACKED) && (token == 0u || token >= end)) SPACE_FIND(token)
      const int count = (int)(min(end, token + SPAN) - token);
      if (held && token == begin) {
        CLEAR_STATES(state);
        if (SCAN_HAS(SCAN_INITIAL)) LOAD_STATES(initial_state, initial_elements, state);
      }
      if (held) {
        load_factors(b_elements, SCAN_FACTOR(b, token), args.b.token, args.b.state, count, states, tile.pitch, ROWS_TYPE, rows.b);
        load_factors(c_elements, SCAN_FACTOR(c, token), args.c.token, args.c.state, count, states, tile.pitch, ROWS_TYPE, rows.c);
      }
      for (int v = 0; v < vectors; ++v) {
        floatv width[SPAN], input[SPAN], output[SPAN];
        if (held) {
          LOAD_ROWS(delta, delta_elements, token, v, width);
          LOAD_ROWS(u, u_elements, token, v, input);
          const bool near = take_widths(&tile, v, count, SCAN_HAS(SCAN_SOFTPLUS), width);
          for (int t = 0; t < count; ++t) {
            output[t] = SCAN_HAS(SCAN_D) ? tile.skip[v] * input[t] : (floatv)(0.0f);
            input[t] *= width[t];
          }
          steps_all(tile.rate + v * tile.pitch, state + v * tile.pitch, &rows, states, tile.pitch, count, near, width, input,
                    output);
          if (SCAN_HAS(SCAN_Z)) {
            LOAD_ROWS(z, z_elements, token, v, width);
            for (int t = 0; t < count; ++t) output[t] *= silu_vector(width[t]);
          }
        } else {
          for (int t = 0; t < count; ++t) output[t] = 0.0f;
        }
        STORE_ROWS(result, result_elements, token, v, output);
      }
      token += (uint)count;
      if (SCAN_HAS(SCAN_FINAL) && held && token == end) STORE_STATES(final_state, final_elements, state)
    }
    if (!SCAN_HAS(SCAN_FINAL)) continue;
    for (uint s = SCAN_HAS(SCAN_PACKED) ? 0u : batch; s < (SCAN_HAS(SCAN_PACKED) ? args.sequences : batch + 1u); ++s) {
      if (!SCAN_IS_EMPTY(s)) continue;
      sequence = s;
      CLEAR_STATES(state);
      if (SCAN_HAS(SCAN_INITIAL)) LOAD_STATES(initial_state, initial_elements, state);
      STORE_STATES(final_state, final_elements, state)
    }
  }
}
