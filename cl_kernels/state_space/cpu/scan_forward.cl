// SPDX-License-Identifier: Apache-2.0
// What     A selective scan: state = exp(step a) state + step b u, output = state c + d u, times silu(z).
// Who      A work-group is one item and owns LANES channels of some batch entries; it takes the tokens in order.
// Memory   Rows once; b and c once for each tile of channels.
// Numerics Float; sums over states four by four; one rounding of each output.
// Assumes  Operands below 2^31 elements, up to SCAN_CPU_STATES states; common/boundaries has run for packed sequences.
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
  ScanFactorRows factors;
  floatv state[SCAN_CPU_VECTORS * SCAN_CPU_STATES];
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
        load_factors(b_elements, SCAN_FACTOR(b, token), args.b.token, args.b.state, count, states, tile.pitch, ROWS_TYPE, factors.b);
        load_factors(c_elements, SCAN_FACTOR(c, token), args.c.token, args.c.state, count, states, tile.pitch, ROWS_TYPE, factors.c);
      }
      for (int v = 0; v < vectors; ++v) {
        floatv given[3][SPAN], width[SPAN], output[1][SPAN];
        for (int t = 0; t < count; ++t) output[0][t] = 0.0f;
        if (held) {
          const ScanRowsAt from[3] = {ROWS_FROM(delta, delta_elements), ROWS_FROM(u, u_elements),
                                      ROWS_FROM(z, SCAN_HAS(SCAN_Z) ? z_elements : 0)};
          load_rows(from, 3, count, SCAN_LEFT(v), ROWS_TYPE, given);
          const bool near = take_widths(&tile, v, count, SCAN_HAS(SCAN_SOFTPLUS), given[0], width);
          for (int t = 0; t < count; ++t) {
            if (SCAN_HAS(SCAN_D)) output[0][t] = tile.skip[v] * given[1][t];
            given[1][t] *= width[t];
          }
          steps_all(tile.rate + v * tile.pitch, state + v * tile.pitch, &factors, states, tile.pitch, count, near, width, given[1],
                    output[0]);
          for (int t = 0; t < count && SCAN_HAS(SCAN_Z); ++t) output[0][t] *= silu_vector(given[2][t]);
        }
        const ScanRowsAt to[1] = {ROWS_TO(result, result_elements)};
        store_rows(to, 1, count, SCAN_LEFT(v), ROWS_TYPE, output);
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
