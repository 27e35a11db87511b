// SPDX-License-Identifier: Apache-2.0
// What     A recurrence: state = decay * state + key value^T, output = scale state^T query; 16 tokens at a time, or one.
// Who      A work-group is one item. It owns 32 PANELS columns of the state of one sequence and head.
// Memory   Operands once for each block of columns, into private memory as floats; the next chunk's are asked for between
//          the products of this one. The state stays in the first two caches.
// Numerics Float. Decays within a chunk are products of the factors of its tokens, none is divided by.
// Assumes  Operands below 2^31 elements; key_dim is at most KEY_BLOCK, a multiple of 16.
#define VECTOR_WIDTH 16
#include "lib/cpu/stream.clh"
#include "lib/cpu/typed.clh"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/places.h"
#include "recurrence/cpu/chunk.clh"

#define ARGS(name) (args.name)
#define TYPE(shift) (args.types >> (shift)&3u)
#define ROWS_TYPE TYPE(RECUR_TYPE_ROWS)
#define LOAD_ONE(from, at, shift) load_typed_steps(from, at, 0, 1, TYPE(shift)).x
#define LOAD_GAMMA(at) LOAD_ONE(gamma_elements, at, RECUR_TYPE_GAMMA)
#define LOAD_BOUNDARY(i) boundaries[args.boundaries + (i)]

KERNEL void recurrence_forward_cpu(const global void* restrict query_elements, const global void* restrict key_elements,
                                   const global void* restrict value_elements, const global void* restrict g_elements,
                                   const global void* restrict gamma_elements, const global void* restrict gk_elements,
                                   const global void* restrict gv_elements, const global float* restrict initial_elements,
                                   global void* restrict output_elements, global float* restrict final_elements,
                                   const global int* restrict boundaries, const struct RecurArgs args) {
  const uint blocks = (args.value_dim + COLUMNS - 1) / COLUMNS;
  const uint unit = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint block = unit % blocks, head = unit / blocks % args.heads, sequence = unit / blocks / args.heads;
  const uint sequences = args.sequences, tokens = args.tokens;
  if (sequence >= max(sequences, 1u)) return;
  const int column = (int)(block * COLUMNS), left = (int)args.value_dim - column;

  uint begin = 0, end = tokens, batch = sequence;
  if (RECUR_HAS(RECUR_PACKED)) {
    batch = 0;
    const bool is_some = sequence < sequences;
    begin = is_some ? (uint)LOAD_BOUNDARY(sequence) : tokens;
    end = is_some ? (uint)LOAD_BOUNDARY(sequence + 1) : tokens;
    const uint before = sequence == 0 ? begin : 0, behind = sequence + 1 >= sequences ? end : tokens;
    for (uint token = 0; token < tokens; ++token) {
      if (token == before) token = behind;
      if (token >= tokens) break;
      for (int v = 0; v < min(left, COLUMNS); v += 16)
        store_typed_part((floatv)(0.0f), output_elements, RECUR_ROW(result, token) + column + v, 1, left - v, ROWS_TYPE);
    }
    if (sequence >= sequences) return;
  }

  Chunk chunk;
  floatv state[PANELS][KEY_BLOCK][2];
  const int key_dim = (int)args.key_dim, keys = (key_dim + 15) / 16 * 16;
  const uint length = end - begin;
  const bool by_key = RECUR_HAS(RECUR_KEY_GATE | RECUR_GK), by_value = RECUR_HAS(RECUR_GV);
  const bool single = length == 1 && !by_value;  // the state goes from one operand to the other
  for (int p = 0; p < PANELS; ++p) {
    for (int k = 0; k < keys && !single; ++k) {
      UNROLL for (int i = 0; i < 2; ++i) {
        const int v = p * 32 + i * 16;
        state[p][k][i] = 0.0f;
        if (RECUR_HAS(RECUR_INITIAL) && k < key_dim && v < left)
          state[p][k][i] = load_typed_part(initial_elements, RECUR_STATE(initial_state, (uint)k) + column + v, 1,
                                           left - v, DTYPE_F32);
      }
    }
  }

  // Padding holds 0 and may not grow, or it would hold NaN.
  const float padding_decay = by_value ? RECUR_LOWEST_DECAY : 1.0f;
  const float decay_of_head = RECUR_DECAY_OF_HEAD;
  for (uint first = 0; first < length; first += CHUNK) {
    const int count = (int)min((uint)CHUNK, length - first);
    // Sums of 0 times whatever is loaded: NaN where something is not finite.
    floatv spoilt = 0.0f, largest = 0.0f;
    for (int t = 0; t < count; ++t) {
      const uint token = RECUR_TOKEN(first + (uint)t);
      const uint query = RECUR_ROW(query, token), key = RECUR_ROW(key, token), value = RECUR_ROW(value, token);
      const uint gate = RECUR_ROW(g, token), gk = RECUR_ROW(gk, token), gv = RECUR_ROW(gv, token);
      float shared = decay_of_head;
      if (RECUR_HAS(RECUR_GATE)) shared += LOAD_ONE(g_elements, gate, RECUR_TYPE_G);
      floatv decay = shared;
      if (!by_key && !by_value) decay = decay_factor(decay);
      for (int k = 0; k < keys; k += 16) {
        const floatv q = load_typed_part(query_elements, query + (uint)k, 1, key_dim - k, ROWS_TYPE);
        const floatv x = load_typed_part(key_elements, key + (uint)k, 1, key_dim - k, ROWS_TYPE);
        if (by_key) {
          decay = shared;
          if (RECUR_HAS(RECUR_KEY_GATE))
            decay += load_typed_part(g_elements, gate + (uint)k, 1, key_dim - k, TYPE(RECUR_TYPE_G));
          if (RECUR_HAS(RECUR_GK))
            decay += load_typed_part(gk_elements, gk + (uint)k, 1, key_dim - k, TYPE(RECUR_TYPE_GK));
          if (!by_value) decay = decay_factor(decay);
        }
        chunk.query[t][k / 16] = q;
        chunk.key[t][k / 16] = x;
        if (key_dim - k < 16) decay = LANE_INDEX < (intv)(key_dim - k) ? decay : SPLAT(padding_decay);
        chunk.decay[t][k / 16] = decay;
        largest = larger(largest, decay);
        spoilt = fma(q, (floatv)(0.0f), fma(x, (floatv)(0.0f), fma(decay, (floatv)(0.0f), spoilt)));
      }
      UNROLL for (int i = 0; i < 2 * PANELS; ++i) {
        const int v = i * 16;
        floatv x = 0.0f;
        if (v < left) x = load_typed_part(value_elements, value + (uint)(column + v), 1, left - v, ROWS_TYPE);
        chunk.value[t][i] = x;
        spoilt = fma(x, (floatv)(0.0f), spoilt);
        if (by_value && v < left)
          chunk.value_decay[t][i] =
              load_typed_part(gv_elements, gv + (uint)(column + v), 1, left - v, TYPE(RECUR_TYPE_GV));
      }
    }
    if (single) {
      const size_t from = RECUR_STATE(initial_state, 0u) + (uint)column, to = RECUR_STATE(final_state, 0u) + (uint)column;
      take_single(&chunk, RECUR_HAS(RECUR_INITIAL) ? initial_elements + from : 0, args.initial_state.row,
                  RECUR_HAS(RECUR_FINAL) ? final_elements + to : 0, args.final_state.row, key_dim, left, args.scale);
    }
    const bool is_apart = any(isnan(spoilt)) || any(largest > SPLAT(MOST_GROWTH));
    const bool in_steps = single || by_value || count < LEAST_CHUNK || is_apart;
    if (in_steps && !single) take_steps(&chunk, state, keys, count, by_value, args.scale);
    if (!in_steps) {
      for (int t = count; t < CHUNK; ++t) clear_token(&chunk, t, keys);
      // Rows of the next chunk, in pieces of 8 floats or the like: an array after the other.
      const uint next = RECUR_TOKEN(first + CHUNK), size = ROWS_TYPE == DTYPE_F32 ? 4 : 2;
      const uint gate_size = TYPE(RECUR_TYPE_G) == DTYPE_F32 ? 4 : 2;
      const int turn = RECUR_HAS(RECUR_REVERSE) ? -1 : 1;
      const Ahead ahead[4] = {
          {(const global char*)query_elements + (size_t)RECUR_ROW(query, next) * size, turn * (int)(args.query.token * size)},
          {(const global char*)key_elements + (size_t)RECUR_ROW(key, next) * size, turn * (int)(args.key.token * size)},
          {(const global char*)g_elements + (size_t)RECUR_ROW(g, next) * gate_size, turn * (int)(args.g.token * gate_size)},
          {(const global char*)value_elements + (size_t)(RECUR_ROW(value, next) + (uint)column) * size,
           turn * (int)(args.value.token * size)}};
      take_chunk(&chunk, state, keys, args.scale, ahead);
    }
    for (int t = 0; t < count; ++t) {
      const uint at = RECUR_ROW(result, RECUR_TOKEN(first + (uint)t)) + (uint)column;
      for (int i = 0; i < 2 * PANELS && i * 16 < left; ++i) {
        if (ROWS_TYPE == DTYPE_F32 && left - i * 16 >= 16) {
          stream_vector(chunk.output[t][i], (global float*)output_elements + at + i * 16);
        } else {
          store_typed_part(chunk.output[t][i], output_elements, at + (uint)(i * 16), 1, left - i * 16, ROWS_TYPE);
        }
      }
    }
  }

  if (single || !RECUR_HAS(RECUR_FINAL)) return;
  for (int p = 0; p < PANELS; ++p) {
    for (int k = 0; k < key_dim; ++k) {
      UNROLL for (int i = 0; i < 2; ++i) {
        const int v = p * 32 + i * 16;
        if (v < left)
          store_typed_part(state[p][k][i], final_elements, RECUR_STATE(final_state, (uint)k) + column + v, 1, left - v,
                           DTYPE_F32);
      }
    }
  }
}
