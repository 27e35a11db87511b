// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a selective scan: of rows and initial states; shares of those of b and c for tiles of channels, and of
//          a, d and delta_bias for batch entries.
// Who      A work-group is one item and owns LANES channels of a batch entry; it takes the tokens in order and leaves the states
//          before each SPAN of them in scratch, then from the last one on, with the states between them in private memory.
// Memory   Rows twice; b and c twice for each tile of channels; states once for SPAN tokens each way.
// Numerics Float; sums over channels vector after vector, then lane by lane in pairs.
// Assumes  Operands and scratch below 2^31 elements, up to SCAN_CPU_STATES states; common/boundaries has run for packed sequences.
#include "state_space/cpu/scan.clh"

SCAN_ALL_STEPS(steps, false)

// Of SPAN tokens and a vector of channels: what is given, delta, u, the gradient and z; steps and gradients of what stands
// before the gate; sums over states, of gradients of states times b, of decays, and outputs: what becomes of them are the
// gradients of u, delta and z.
typedef struct {
  floatv given[4][SPAN], width[SPAN], gradient[SPAN], sums[3][SPAN];
} ScanRows;
#define GIVEN_U(row) (row)->given[1]
#define ALONG(row) (row)->sums[0]
#define DECAY(row) (row)->sums[1]
#define OUTPUT(row) (row)->sums[2]

// Lane i is the sum of the lanes of x[i].
INLINE floatv lane_sums(floatv* x) {
  UNROLL for (int step = VECTOR_WIDTH / 2; step > 0; step /= 2) {
    UNROLL for (int i = 0; i < VECTOR_WIDTH / 2; ++i) {
      if (i < step)
        x[i] = (floatv)(x[2 * i].even, x[2 * i + 1].even) + (floatv)(x[2 * i].odd, x[2 * i + 1].odd);
    }
  }
  return x[0];
}

// COUNT states of a vector of channels, with the state before in `before` and the gradient of that behind in `slope`; adds to
// the sums of the rows, to `drate` and to the sums over channels that make the gradients of b and c.
#define SCAN_BACK_STEPS(name, COUNT, POWER)                                                                         \
  INLINE void name(const floatv* rate, const floatv* before, floatv* slope, floatv* drate, const float* b, const float* c, \
                   int pitch, int count, ScanRows* rows, floatv* of_b, floatv* of_c) {                              \
    floatv now[(SPAN + 1) * COUNT], factor[SPAN * COUNT], slopes[COUNT], sums[COUNT];                               \
    UNROLL for (int k = 0; k < COUNT; ++k) {                                                                        \
      now[k] = before[k];                                                                                           \
      slopes[k] = slope[k];                                                                                         \
      sums[k] = drate[k];                                                                                           \
    }                                                                                                               \
    for (int t = 0; t < count; ++t) {                                                                               \
      const floatv input = rows->width[t] * GIVEN_U(rows)[t];                                                             \
      UNROLL for (int k = 0; k < COUNT; ++k) {                                                                      \
        const floatv power = POWER(rows->width[t] * rate[k]);                                                       \
        factor[t * COUNT + k] = power;                                                                              \
        now[(t + 1) * COUNT + k] = fma(power, now[t * COUNT + k], input * b[t * pitch + k]);                        \
      }                                                                                                             \
    }                                                                                                               \
    for (int t = count - 1; t >= 0; --t) {                                                                          \
      const floatv width = rows->width[t], input = width * GIVEN_U(rows)[t], gradient = rows->gradient[t];                \
      floatv output = OUTPUT(rows)[t], along = ALONG(rows)[t], decay = DECAY(rows)[t];                              \
      UNROLL for (int k = 0; k < COUNT; ++k) {                                                                      \
        const floatv after = now[(t + 1) * COUNT + k], of = (floatv)(c[t * pitch + k]);                             \
        slopes[k] = fma(gradient, of, slopes[k]);                                                                   \
        output = fma(after, of, output);                                                                            \
        along = fma(slopes[k], (floatv)(b[t * pitch + k]), along);                                                  \
        of_b[t * COUNT + k] = fma(input, slopes[k], of_b[t * COUNT + k]);                                           \
        of_c[t * COUNT + k] = fma(gradient, after, of_c[t * COUNT + k]);                                            \
        slopes[k] *= factor[t * COUNT + k];                                                                         \
        const floatv change = slopes[k] * now[t * COUNT + k];                                                       \
        decay = fma(change, rate[k], decay);                                                                        \
        sums[k] = fma(width, change, sums[k]);                                                                      \
      }                                                                                                             \
      OUTPUT(rows)[t] = output;                                                                                     \
      ALONG(rows)[t] = along;                                                                                       \
      DECAY(rows)[t] = decay;                                                                                       \
    }                                                                                                               \
    UNROLL for (int k = 0; k < COUNT; ++k) {                                                                        \
      slope[k] = slopes[k];                                                                                         \
      drate[k] = sums[k];                                                                                           \
    }                                                                                                               \
  }
SCAN_BACK_STEPS(back_near, BLOCK, exp2_near)
SCAN_BACK_STEPS(back_any, 1, exp2_any)

// The sums over lanes of `each` states of SPAN tokens, to products[token pitch + state].
INLINE void store_products(floatv* sums, int each, int count, global float* products, uint pitch) {
  for (int r = 0; r < each; ++r) {
    float lanes[VECTOR_WIDTH];
    vstorev(lane_sums(sums + r * VECTOR_WIDTH), 0, lanes);
    for (int i = 0; i < VECTOR_WIDTH; ++i) {
      const int t = (r * VECTOR_WIDTH + i) / each, k = (r * VECTOR_WIDTH + i) % each;
      if (t < count) products[(size_t)t * pitch + k] = lanes[i];
    }
  }
}


KERNEL void selective_scan_gradients_cpu(
    const global void* restrict u_elements,
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict b_elements,
    const global void* restrict c_elements,
    const global void* restrict d_elements,
    const global void* restrict z_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    const global void* restrict doutput_elements,
    const global void* restrict dfinal_elements,
    global void* restrict du_elements,
    global void* restrict ddelta_elements,
    global void* restrict dz_elements,
    global void* restrict dinitial_elements,
    global float* scratch,
    const struct ScanArgs args) {
  SCAN_OWN
  const uint batch = share, tiles_before = share * tiles + place;
  if (batch >= args.batches) return;
  const bool softplus = SCAN_HAS(SCAN_SOFTPLUS);
  ScanTile tile;
  ScanFactorRows factors;
  ScanRows rows[SCAN_CPU_VECTORS];
  floatv state[SCAN_CPU_VECTORS * SCAN_CPU_STATES], slope[SCAN_CPU_VECTORS * SCAN_CPU_STATES];
  floatv drate[SCAN_CPU_VECTORS * SCAN_CPU_STATES], dskip[SCAN_CPU_VECTORS], dbias[SCAN_CPU_VECTORS];
  floatv of_b[SPAN * BLOCK], of_c[SPAN * BLOCK];
  SCAN_LOAD_TILE
  CLEAR_STATES(drate);
  for (int v = 0; v < vectors; ++v) dskip[v] = dbias[v] = 0.0f;
  // The states before token SPAN i, where they are not those of a sequence's beginning.
  const size_t size = (size_t)LANES * (uint)states;
  global float* kept = scratch + 4 * (size_t)args.back + tiles_before * (size_t)((tokens + SPAN - 1) / SPAN) * size;
#define KEPT(token, v, n) (kept + (token) / SPAN * size + ((v)*states + (n)) * VECTOR_WIDTH)

  uint sequence = batch, begin = 0u, end = tokens;
  bool held = true;
  for (uint token = 0u; token < tokens;) {
    if (SCAN_HAS(SCAN_PACKED) && (token == 0u || token >= end)) SPACE_FIND(token)
    const uint stop = min(end, (token / SPAN + 1u) * SPAN);
    const int count = (int)(stop - token);
    const bool goes_on = held && stop < end;  // nobody asks for the last state
    if (goes_on && token == begin) {
      CLEAR_STATES(state);
      if (SCAN_HAS(SCAN_INITIAL)) LOAD_STATES(initial_state, initial_elements, state);
    }
    if (goes_on) {
      load_factors(b_elements, SCAN_FACTOR(b, token), args.b.token, args.b.state, count, states, tile.pitch, ROWS_TYPE,
                   factors.b);
      for (int v = 0; v < vectors; ++v) {
        floatv given[2][SPAN], width[SPAN];
        const ScanRowsAt from[2] = {ROWS_FROM(delta, delta_elements), ROWS_FROM(u, u_elements)};
        load_rows(from, 2, count, SCAN_LEFT(v), ROWS_TYPE, given);
        const bool near = take_widths(&tile, v, count, softplus, given[0], width);
        for (int t = 0; t < count; ++t) given[1][t] *= width[t];
        steps_all(tile.rate + v * tile.pitch, state + v * tile.pitch, &factors, states, tile.pitch, count, near, width,
                  given[1], 0);
        for (int n = 0; n < states; ++n) vstorev(state[v * tile.pitch + n], 0, KEPT(stop, v, n));
      }
    }
    token = stop;
  }

  const uint products_pitch = tiles * 2u * args.states;
  for (uint stop = tokens; stop > 0u;) {
    if (SCAN_HAS(SCAN_PACKED) && (stop == tokens || stop <= begin)) SPACE_FIND(stop - 1u)
    const uint token = max(begin, (stop - 1u) / SPAN * SPAN);
    const int count = (int)(stop - token);
    global float* products = scratch + args.products + ((size_t)(batch * tokens + token) * tiles + place) * 2u * args.states;
    const bool wants_products = SCAN_HAS(SCAN_GRAD_B | SCAN_GRAD_C);
    for (int v = 0; v < vectors; ++v)
      for (int t = 0; t < SPAN; ++t) ALONG(rows + v)[t] = DECAY(rows + v)[t] = OUTPUT(rows + v)[t] = 0.0f;
    for (int t = 0; t < count && !held && wants_products; ++t)
      for (int n = 0; n < 2 * states; ++n) products[(size_t)t * products_pitch + n] = 0.0f;
    if (held) {
      if (stop == end) {
        CLEAR_STATES(slope);
        if (SCAN_HAS(SCAN_FINAL)) LOAD_STATES(final_state, dfinal_elements, slope);
      }
      if (token == begin) {
        CLEAR_STATES(state);
        if (SCAN_HAS(SCAN_INITIAL)) LOAD_STATES(initial_state, initial_elements, state);
      } else {
        for (int v = 0; v < vectors; ++v)
          for (int n = 0; n < states; ++n) state[v * tile.pitch + n] = vloadv(0, KEPT(token, v, n));
      }
      load_factors(b_elements, SCAN_FACTOR(b, token), args.b.token, args.b.state, count, states, tile.pitch, ROWS_TYPE, factors.b);
      load_factors(c_elements, SCAN_FACTOR(c, token), args.c.token, args.c.state, count, states, tile.pitch, ROWS_TYPE, factors.c);
      bool near = true;
      for (int v = 0; v < vectors; ++v) {
        ScanRows* row = rows + v;
        const ScanRowsAt from[4] = {ROWS_FROM(delta, delta_elements), ROWS_FROM(u, u_elements),
                                    ROWS_FROM(result, doutput_elements), ROWS_FROM(z, SCAN_HAS(SCAN_Z) ? z_elements : 0)};
        load_rows(from, 4, count, SCAN_LEFT(v), ROWS_TYPE, row->given);
        near &= take_widths(&tile, v, count, softplus, row->given[0], row->width);
        // Sums over lanes have nothing of those behind the channels.
        const intv is_channel = LANE_INDEX < (intv)(SCAN_LEFT(v));
        for (int t = 0; t < count; ++t) {
          floatv gradient = row->given[2][t];
          if (SCAN_HAS(SCAN_Z)) gradient *= silu_vector(row->given[3][t]);
          row->gradient[t] = is_channel ? gradient : (floatv)(0.0f);
          row->width[t] = is_channel ? row->width[t] : (floatv)(0.0f);
          GIVEN_U(row)[t] = is_channel ? GIVEN_U(row)[t] : (floatv)(0.0f);
        }
      }
      for (int n = 0; n < states;) {
        const int each = near && n + BLOCK <= states ? BLOCK : 1;
        for (int i = 0; i < SPAN * each; ++i) of_b[i] = of_c[i] = 0.0f;
        for (int v = 0; v < vectors; ++v) {
          const int at = v * tile.pitch + n;
          if (each == BLOCK) {
            back_near(tile.rate + at, state + at, slope + at, drate + at, factors.b + n, factors.c + n, tile.pitch, count, rows + v,
                      of_b, of_c);
          } else {
            back_any(tile.rate + at, state + at, slope + at, drate + at, factors.b + n, factors.c + n, tile.pitch, count, rows + v,
                     of_b, of_c);
          }
        }
        if (wants_products) {
          store_products(of_b, each, count, products + n, products_pitch);
          store_products(of_c, each, count, products + states + n, products_pitch);
        }
        n += each;
      }
      for (int v = 0; v < vectors; ++v) {
        ScanRows* row = rows + v;
        const floatv skip = tile.skip[v];
        for (int t = 0; t < count; ++t) {
          const floatv gradient = row->gradient[t], u = GIVEN_U(row)[t];
          floatv change = fma(u, ALONG(row)[t], DECAY(row)[t] * M_LN2_F);
          if (softplus) change *= sigmoid_vector(row->given[0][t] + tile.bias[v]);
          dskip[v] = fma(gradient, u, dskip[v]);
          dbias[v] += change;
          ALONG(row)[t] = fma(row->width[t], ALONG(row)[t], gradient * skip);
          DECAY(row)[t] = change;
          if (SCAN_HAS(SCAN_Z))
            OUTPUT(row)[t] = fma(skip, u, OUTPUT(row)[t]) * row->given[2][t] * silu_slope_vector(row->given[3][t]);
        }
      }
      if (token == begin && SCAN_HAS(SCAN_GRAD_INITIAL)) STORE_STATES(dinitial, dinitial_elements, slope)
    }
    for (int v = 0; v < vectors; ++v) {
      const ScanRowsAt to[3] = {ROWS_TO(du, SCAN_HAS(SCAN_GRAD_U) ? du_elements : 0),
                                ROWS_TO(ddelta, SCAN_HAS(SCAN_GRAD_DELTA) ? ddelta_elements : 0),
                                ROWS_TO(dz, SCAN_HAS(SCAN_GRAD_Z) ? dz_elements : 0)};
      store_rows(to, 3, count, SCAN_LEFT(v), ROWS_TYPE, rows[v].sums);
    }
    stop = token;
  }

  for (uint s = SCAN_HAS(SCAN_PACKED) ? 0u : batch;
       SCAN_HAS(SCAN_GRAD_INITIAL) && s < (SCAN_HAS(SCAN_PACKED) ? args.sequences : batch + 1u); ++s) {
    if (!SCAN_IS_EMPTY(s)) continue;
    sequence = s;
    CLEAR_STATES(slope);
    if (SCAN_HAS(SCAN_FINAL)) LOAD_STATES(final_state, dfinal_elements, slope);
    STORE_STATES(dinitial, dinitial_elements, slope)
  }
  for (int v = 0; v < vectors; ++v) {
    float lanes[VECTOR_WIDTH];
    for (int n = 0; n < states; ++n) {
      vstorev(drate[v * tile.pitch + n], 0, lanes);
      global float* made = scratch + 4 * ((size_t)args.made + (size_t)tiles_before * LANES * args.parts +
                                          (size_t)(n / 4 * LANES + v * VECTOR_WIDTH)) + n % 4;
      for (int i = 0; i < VECTOR_WIDTH; ++i) made[4 * i] = lanes[i];
    }
    global float* sums = scratch + args.sums + 2 * ((size_t)tiles_before * LANES + (size_t)(v * VECTOR_WIDTH));
    vstorev(dskip[v], 0, lanes);
    for (int i = 0; i < VECTOR_WIDTH; ++i) sums[2 * i] = lanes[i];
    vstorev(dbias[v], 0, lanes);
    for (int i = 0; i < VECTOR_WIDTH; ++i) sums[2 * i + 1] = lanes[i];
  }
}
