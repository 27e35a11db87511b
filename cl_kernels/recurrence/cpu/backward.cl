// SPDX-License-Identifier: Apache-2.0
// What     The gradients of a recurrence, 16 tokens at a time: forward for the states before segments of tokens, then back,
//          where the states within a segment are made once more.
// Who      A work-group is one item. It owns 32 PANELS columns of the state of one sequence and head, then of others.
// Memory   Operands once on the way back, what states are made of twice, or thrice where a segment has several chunks. States
//          before segments go to scratch past the caches and come back asked for in time; those within a segment stay in the
//          second cache. Gradients of keys go to scratch where several blocks of columns add to them.
// Numerics Float. Decays within a chunk are products of the factors of its tokens, none is divided by.
// Assumes  Operands below 2^31 elements; key_dim is at most KEY_BLOCK, a multiple of 16; values have no decays.
#define VECTOR_WIDTH 16
#include "lib/cpu/stream.clh"
#include "lib/cpu/typed.clh"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/places.h"
#include "recurrence/cpu/gradients.clh"

#define ARGS(name) (args.name)
#define TYPE(shift) (args.types >> (shift)&3u)
#define ROWS_TYPE TYPE(RECUR_TYPE_ROWS)
#define LOAD_ONE(from, at, shift) load_typed_steps(from, at, 0, 1, TYPE(shift)).x
#define LOAD_GAMMA(at) LOAD_ONE(gamma_elements, at, RECUR_TYPE_GAMMA)
#define LOAD_BOUNDARY(i) ((const global int*)scratch)[args.boundaries + (i)]
#define SIZE_OF(shift) (TYPE(shift) == DTYPE_F32 ? 4 : 2)
#define AHEAD(operand, rows, from, shift)                                                                   \
  {(const global char*)operand##_elements + (size_t)(RECUR_ROW(rows, next) + (uint)(from)) * SIZE_OF(shift), \
   turn * (int)args.rows.token * SIZE_OF(shift)}
#define STATE_VECTORS ((size_t)KEY_BLOCK / 16 * COLUMNS)

// Rows of a state in an operand as panels, and back.
INLINE void load_state(const global float* from, size_t at, uint row, global floatv* to, int key_dim, int columns, int left) {
  for (int k = 0; k < key_dim; k += 16) {
    for (int v = 0; v < columns; ++v) {
      floatv x = 0.0f;
      if (from && v < left) x = load_typed_part(from, at + (size_t)k * row + v, row, key_dim - k, DTYPE_F32);
      to[k / 16 * COLUMNS + v] = x;
    }
  }
}

// A row of a gradient of key dims, of which operands may not be there; or a share of it, in scratch.
INLINE void store_row(const floatv* x, global void* to, size_t at, int count, uint type) {
  const int streamed = type == DTYPE_F32 ? count / 16 : 0;
  for (int i = 0; i < streamed; ++i) stream_vector(x[i], (global float*)to + at + i * 16);
  for (int i = streamed; i * 16 < count; ++i) store_typed_part(x[i], to, at + (size_t)(i * 16), 1, count - i * 16, type);
}
#define SHARE_OF(shares) (4 * (size_t)RECUR_SHARE(shares, token, 0u))
#define STORE_GRADIENTS(query_row, key_row, decay_row, value_row)                                                       \
  {                                                                                                                     \
    const int shared = 4 * ((key_dim + 3) / 4);                                                                         \
    if (tiles > 1) {                                                                                                    \
      store_row(query_row, scratch, SHARE_OF(dquery_shares), shared, DTYPE_F32);                                        \
      store_row(key_row, scratch, SHARE_OF(dkey_shares), shared, DTYPE_F32);                                            \
      if (RECUR_HAS(RECUR_GRAD_DECAY)) store_row(decay_row, scratch, SHARE_OF(decay_shares), shared, DTYPE_F32);        \
    } else {                                                                                                            \
      if (RECUR_HAS(RECUR_GRAD_QUERY))                                                                                  \
        store_row(query_row, dquery_elements, RECUR_ROW(dquery, token), key_dim, ROWS_TYPE);                            \
      if (RECUR_HAS(RECUR_GRAD_KEY)) store_row(key_row, dkey_elements, RECUR_ROW(dkey, token), key_dim, ROWS_TYPE);     \
      if (RECUR_HAS(RECUR_GRAD_GK))                                                                                     \
        store_row(decay_row, dgk_elements, RECUR_ROW(dgk, token), key_dim, TYPE(RECUR_TYPE_GK));                        \
      if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_KEY_GATE))                                                         \
        store_row(decay_row, dg_elements, RECUR_ROW(dg, token), key_dim, TYPE(RECUR_TYPE_G));                           \
      if (RECUR_HAS(RECUR_GATE | RECUR_GAMMA) && RECUR_HAS(RECUR_GRAD_DECAY)) {                                         \
        floatv all = 0.0f;                                                                                              \
        for (int k = 0; k < key_dim; k += 16)                                                                           \
          all += LANE_INDEX < (intv)(key_dim - k) ? (decay_row)[k / 16] : SPLAT(0.0f);                                  \
        const float sum = sum_of_lanes(all);                                                                            \
        if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_GATE))                                                           \
          store_typed_steps((float4)(sum), dg_elements, RECUR_ROW(dg, token), 0, 1, TYPE(RECUR_TYPE_G));                \
        scratch[4 * (size_t)args.sums + (batch * tokens + token) * args.heads + head] = sum;                            \
      }                                                                                                                 \
    }                                                                                                                   \
    if (RECUR_HAS(RECUR_GRAD_VALUE))                                                                                    \
      store_row(value_row, dvalue_elements, RECUR_ROW(dvalue, token) + column, min(left, COLUMNS), ROWS_TYPE);          \
  }

KERNEL void recurrence_backward_cpu(const global void* restrict query_elements, const global void* restrict key_elements,
                                    const global void* restrict value_elements, const global void* restrict g_elements,
                                    const global void* restrict gamma_elements, const global void* restrict gk_elements,
                                    const global float* restrict initial_elements,
                                    const global void* restrict doutput_elements,
                                    const global float* restrict dfinal_elements, global void* restrict dquery_elements,
                                    global void* restrict dkey_elements, global void* restrict dvalue_elements,
                                    global void* restrict dg_elements, global void* restrict dgk_elements,
                                    global float* restrict dinitial_elements, global float* scratch,
                                    const struct RecurArgs args) {
  const uint tiles = args.tiles, sequences = args.sequences, tokens = args.tokens;
  const uint units = tiles * args.heads * max(sequences, 1u);
  const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
  const int key_dim = (int)args.key_dim, keys = (key_dim + 15) / 16 * 16, vectors = keys / 16;
  const int slots = (int)args.segment / CHUNK;
  global floatv* inner = (global floatv*)(scratch + 4 * (size_t)args.inner) + (size_t)group * (slots + 2) * STATE_VECTORS;
  global floatv* gradient = inner + (size_t)slots * STATE_VECTORS;
  global floatv* spare = gradient + STATE_VECTORS;
  Chunk chunk;
  Gradients results;
  floatv rows[CHUNK][2 * PANELS];

  for (uint unit = group; unit < units; unit += groups) {
    const uint tile = unit % tiles, head = unit / tiles % args.heads, sequence = unit / tiles / args.heads;
    const int column = (int)(tile * COLUMNS), left = (int)args.value_dim - column;
    const int columns = min(COLUMNS, (left + 15) / 16 * 16);
    uint begin = 0, end = tokens, batch = sequence;
    if (RECUR_HAS(RECUR_PACKED)) {
      batch = 0;
      const bool is_some = sequence < sequences;
      begin = is_some ? (uint)LOAD_BOUNDARY(sequence) : tokens;
      end = is_some ? (uint)LOAD_BOUNDARY(sequence + 1) : tokens;
      const uint before = sequence == 0 ? begin : 0, behind = sequence + 1 >= sequences ? end : tokens;
      floatv zeros[KEY_VECTORS + 2 * PANELS];
      for (int i = 0; i < KEY_VECTORS + 2 * PANELS; ++i) zeros[i] = 0.0f;
      for (uint token = 0; token < tokens; ++token) {
        if (token == before) token = behind;
        if (token >= tokens) break;
        STORE_GRADIENTS(zeros, zeros, zeros, zeros)
      }
      if (sequence >= sequences) continue;
    }

    load_state(RECUR_HAS(RECUR_INITIAL) ? initial_elements : 0, RECUR_STATE(initial_state, 0u) + (uint)column,
               args.initial_state.row, inner, key_dim, columns, left);
    load_state(RECUR_HAS(RECUR_FINAL) ? dfinal_elements : 0, RECUR_STATE(final_state, 0u) + (uint)column,
               args.final_state.row, gradient, key_dim, columns, left);
    const float decay_of_head = RECUR_DECAY_OF_HEAD;
    const bool by_key = RECUR_HAS(RECUR_KEY_GATE | RECUR_GK);
    const uint length = end - begin;
    const int segments = (int)((length + args.segment - 1) / args.segment);
    const size_t kept =
        ((size_t)((batch * tokens + begin) / args.segment + sequence) * args.heads + head) * tiles + tile;
    // Forward through all segments but the last one, then back through all.
    for (int visit = 0; visit < 2 * segments - 1; ++visit) {
      const bool is_back = visit >= segments - 1;
      const int segment = is_back ? 2 * segments - 2 - visit : visit;
      const uint first = (uint)segment * args.segment;
      const int chunks = (int)((min(args.segment, length - first) + CHUNK - 1) / CHUNK);
      global floatv* state = (global floatv*)(scratch + 4 * (size_t)args.kept) +
                             (kept + (size_t)segment * args.heads * tiles) * STATE_VECTORS;
      const size_t between = (size_t)args.heads * tiles * STATE_VECTORS;  // from a segment's state to the next one's
      for (int step = 0; step < (is_back ? 2 * chunks - 1 : chunks); ++step) {
        const bool turns = is_back && step >= chunks - 1;
        const int slot = turns ? 2 * chunks - 2 - step : is_back ? step : 0;
        const uint from = first + (uint)((turns ? slot : step) * CHUNK);
        const int count = (int)min((uint)CHUNK, length - from);
        // Sums of 0 times whatever is loaded: NaN where something is not finite, or grows.
        floatv spoilt = 0.0f;
        for (int t = 0; t < count; ++t) {
          const uint token = RECUR_TOKEN(from + (uint)t);
          const uint key = RECUR_ROW(key, token), gate = RECUR_ROW(g, token), gk = RECUR_ROW(gk, token);
          float shared = decay_of_head;
          if (RECUR_HAS(RECUR_GATE)) shared += LOAD_ONE(g_elements, gate, RECUR_TYPE_G);
          floatv decay = shared;
          for (int k = 0; k < keys; k += 16) {
            const floatv x = load_typed_part(key_elements, key + (uint)k, 1, key_dim - k, ROWS_TYPE);
            if (by_key) {
              decay = shared;
              if (RECUR_HAS(RECUR_KEY_GATE))
                decay += load_typed_part(g_elements, gate + (uint)k, 1, key_dim - k, TYPE(RECUR_TYPE_G));
              if (RECUR_HAS(RECUR_GK))
                decay += load_typed_part(gk_elements, gk + (uint)k, 1, key_dim - k, TYPE(RECUR_TYPE_GK));
            }
            if (key_dim - k < 16) decay = LANE_INDEX < (intv)(key_dim - k) ? decay : SPLAT(0.0f);
            chunk.key[t][k / 16] = x;
            chunk.decay[t][k / 16] = decay;
            spoilt = fma(x, SPLAT(0.0f), decay <= SPLAT(MOST_DECAY) ? spoilt : SPLAT(NAN));
          }
          const uint value = RECUR_ROW(value, token) + (uint)column;
          for (int v = 0; v < columns; v += 16) {
            const floatv x = load_typed_part(value_elements, value + (uint)v, 1, left - v, ROWS_TYPE);
            chunk.value[t][v / 16] = x;
            spoilt = fma(x, (floatv)(0.0f), spoilt);
          }
          if (!turns) continue;
          const uint query = RECUR_ROW(query, token), row = RECUR_ROW(result, token) + (uint)column;
          for (int k = 0; k < keys; k += 16) {
            const floatv x = load_typed_part(query_elements, query + (uint)k, 1, key_dim - k, ROWS_TYPE);
            chunk.query[t][k / 16] = x;
            spoilt = fma(x, (floatv)(0.0f), spoilt);
          }
          for (int v = 0; v < columns; v += 16) {
            const floatv x = load_typed_part(doutput_elements, row + (uint)v, 1, left - v, ROWS_TYPE);
            rows[t][v / 16] = x;
            spoilt = fma(x, (floatv)(0.0f), spoilt);
          }
        }
        const bool in_steps = any(isnan(spoilt));
        take_factors(&chunk, vectors, count, by_key, in_steps);
        for (int t = count; t < CHUNK && !in_steps; ++t) {
          clear_token(&chunk, t, keys);
          for (int i = 0; i < 2 * PANELS; ++i) rows[t][i] = 0.0f;
        }
        // Rows of the next chunk.
        const int next_step = step + 1;
        const bool turns_next = is_back && next_step >= chunks - 1;
        const int next_slot = turns_next ? 2 * chunks - 2 - next_step : next_step;
        const uint next = RECUR_TOKEN(first + (next_slot < 0 ? 0 - args.segment : (uint)(next_slot * CHUNK)));
        const int turn = RECUR_HAS(RECUR_REVERSE) ? -1 : 1;
        const Ahead ahead[5] = {
            AHEAD(key, key, 0, RECUR_TYPE_ROWS), AHEAD(value, value, column, RECUR_TYPE_ROWS), AHEAD(g, g, 0, RECUR_TYPE_G),
            AHEAD(query, query, 0, RECUR_TYPE_ROWS), AHEAD(doutput, result, column, RECUR_TYPE_ROWS)};
        // States of the last segment, and those behind a segment's first chunk, are in `inner`.
        const global floatv* before = inner + (size_t)slot * STATE_VECTORS;
        if (is_back && slot == 0 && segment < segments - 1) before = state;
        if (!turns) {
          global floatv* to = inner + (size_t)(is_back ? slot + 1 : 0) * STATE_VECTORS;
          global floatv* kept_here = !is_back && step == 0 ? state : 0;
          if (in_steps) {
            step_state(&chunk, before, to, kept_here, vectors, columns, count);
          } else {
            advance_state(&chunk, before, to, kept_here, vectors, columns, ahead, turns_next ? 5 : 3);
          }
          continue;
        }
        if (in_steps) {
          step_gradients(&chunk, rows, before, gradient, spare, &results, keys, columns, count, args.scale);
        } else {
          const global floatv* soon = slot > 1 ? before - STATE_VECTORS : slot > 0 ? state : state - between;
          chunk_gradients(&chunk, rows, before, soon, gradient, &results, keys, columns, args.scale, ahead);
        }
        for (int t = 0; t < count; ++t) {
          const uint token = RECUR_TOKEN(from + (uint)t);
          STORE_GRADIENTS(results.query[t], results.key[t], results.decay[t], results.value[t])
        }
      }
    }
    if (!RECUR_HAS(RECUR_GRAD_INITIAL)) continue;
    for (int k = 0; k < key_dim; k += 16) {
      for (int v = 0; v < min(columns, left); ++v)
        store_typed_part(gradient[k / 16 * COLUMNS + v], dinitial_elements,
                         RECUR_STATE(dinitial, (uint)k) + column + v, args.dinitial.row, key_dim - k, DTYPE_F32);
    }
  }
}
