// SPDX-License-Identifier: Apache-2.0
// What     The gradient of a delta rule's state from the last chunk of 64 tokens to the first, and what it is for values.
//          With e_t the factors to the chunk's end, D the gradient of the state behind it and weights, solution those of
//          delta_chunks,
//            c = solution^T (scale weights^T grad_output + e D^T key), grad_value = beta c
//            D before the chunk = decay D + query (scale d grad_output)^T - key (beta d c)^T
// Who      A work-group owns WG_X / 16 columns of a sequence in a head (delta_scan.clh).
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, STAGES - 1
//          chunks ahead; gradients of outputs and of values once; D of each chunk and c to scratch as floats.
// Numerics Float sums of products of f16 or bf16. Rounded to those are weights; all else is the sum of two such numbers (what
//          the solution is multiplied with, and itself, of bfloat16). Chunks that delta_chunks has marked, or where something
//          here is not finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#define RECUR_OUTPUTS 0
#define DELTA_BACK 1
#define DELTA_QUERIES 1
#include "recurrence/mma/delta_scan.clh"

// Of rows of tokens in tiles, by chunks of 16 bytes: gradients of outputs, beside what is missing; those decayed from the
// chunk's beginning, and what leaves the gradient of the state, both in halves.
#define GIVEN 4
#define DECAYED 0
#define LEAVING 4

// Token t of a stage, in `gradient`: what its output's, `given` times the scale, adds to it; then what that is for its
// change, of columns lane / 4 and 8 more, leaves it; then it decays.
INLINE void take_delta_step_back(float* state, float* change, uint stage, uint t, const float* given, float log_decay,
                                 float beta, local float* shares, Worker at) {
  const float2 decay = decay_shares(log_decay);
  local float* turn = shares + t % 2 * TEAMS * RECUR_DELTA_WARPS * 16;
  float sum[2] = {0.0f, 0.0f};
  EACH_PAIR(RECUR_MMA_KEY_BYTES, {
    h[0] = fma(x.s0, given[r], h[0]);
    h[1] = fma(x.s1, given[r], h[1]);
  })
  EACH_PAIR(0, { sum[r] = fma(x.s1, h[1], fma(x.s0, h[0], sum[r])); })
  share_sums(turn, sum, at);
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint r = 0; r < 2; ++r) change[r] = shared_sum(turn, at.team, at.lane / 4 + r * 8);
  EACH_PAIR(0, {
    const float leaves = beta * change[r];
    h[0] = fma(-x.s0, leaves, h[0]) * decay.s0 * decay.s1;
    h[1] = fma(-x.s1, leaves, h[1]) * decay.s0 * decay.s1;
  })
}

KERNEL void recurrence_delta_back(const global scalar* restrict query_elements,
                                  const global scalar* restrict key_elements, const global void* restrict g_elements,
                                  const global scalar* restrict doutput_elements,
                                  const global float* restrict dfinal_elements, global scalar* restrict dvalue_elements,
                                  global float* restrict dinitial_elements, global float* restrict scratch,
                                  const struct RecurArgs arguments) {
  const struct RecurArgs* args = &arguments;
  local uchar memory[RECUR_DELTA_LOCAL_BYTES] __attribute__((aligned(128)));
  const uint tiles_of_memory = LOCAL_ADDRESS(memory);
  local float* shares = (local float*)(memory + RECUR_DELTA_SHARES);
  volatile local int* flags = (volatile local int*)(memory + RECUR_DELTA_FLAGS);

  const uint item = (uint)get_local_id(0);
  const Worker at = worker_of(item);
  const uint tiles = (ARGS(value_dim) + RECUR_DELTA_COLUMNS - 1) / RECUR_DELTA_COLUMNS, heads = ARGS(heads);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint head = group / tiles % heads, sequence = group / tiles / heads;
  if (sequence >= max(ARGS(sequences), 1u)) return;
  const uint own_column = group % tiles * RECUR_DELTA_COLUMNS + at.team * 16;  // of the team's first
  const bool present = own_column < ARGS(value_dim);
  const bool some = sequence < ARGS(sequences), wants_values = RECUR_HAS(RECUR_GRAD_VALUE) && present;
  const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
  Place place = {.batch = 0, .head = head, .begin = ARGS(tokens), .end = ARGS(tokens)};
  if (some) place = place_of_sequence(args, boundaries, sequence, head);
  if (RECUR_HAS(RECUR_PACKED) && wants_values)
    clear_rows(dvalue_elements, args, args->dvalue, place, sequence, own_column, at);
  if (!some) return;
  const uint length = place.end - place.begin, last = (length + DELTA_CHUNK - 1) / DELTA_CHUNK - 1;
  const uint slot = RECUR_DELTA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence) + last;
  const global uchar* kept = chunk_scratch(scratch, args, slot, head);
  const size_t kept_pitch = (size_t)heads * RECUR_DELTA_CHUNK_BYTES;
  const Operands on = {.gate = g_elements};

  float state[8 * OWN_STEPS];  // its gradient
  UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) state[i] = 0.0f;
  if (RECUR_HAS(RECUR_FINAL) && present)
    load_state(state, dfinal_elements + STATE_AT(final_state), ARGS(final_state.row), at);
  const uint states = tiles_of_memory + RECUR_DELTA_STATES + at.team * 2 * RECUR_DELTA_STATE_BYTES;
  const uint missing = tiles_of_memory + RECUR_DELTA_MISSING + at.team * 128;
  const uint changes = tiles_of_memory + RECUR_DELTA_CHANGES + at.team * 128;
  store_state(states, state, at);
  if (item < 2) FLAG(item) = 0;

  const uint key_row = item / ROW_ITEMS, key_column = item % ROW_ITEMS * 8;
  const uint word_column = own_column + at.eight * 8 + at.lane % 4 * 2, end = last * DELTA_CHUNK;
  Rows keys = rows_of(key_elements, args, place, args->key, end, key_row, key_column);
  Rows queries = rows_of(query_elements, args, place, args->query, end, key_row, key_column);
  Rows given = rows_of(doutput_elements, args, place, args->result, end, TOKEN_OF_WORD(0), word_column);
  Rows dvalues = rows_of(dvalue_elements, args, place, args->dvalue, end, TOKEN_OF_WORD(0), word_column);
  global float* kept_states = kept_state(scratch, args, ARGS(dstates), slot, head) + own_column * KEY_DIM;
  global float* kept_changes = kept_rows(scratch, args, ARGS(dchanges), slot, head) + own_column;
  uint output[2] = {0, 0};
  uint stage_of = 0, parity = 0;
  if (length > 0) {
    copy_chunk(tiles_of_memory, &keys, &queries, kept, length - end, item);
    load_rows(output, &given, present, end, length, at);
    store_rows(missing, GIVEN, output, at);
  }
  ROLLED for (uint behind = length; behind > 0;) {
    const uint first = (behind - 1) / DELTA_CHUNK * DELTA_CHUNK, count = behind - first;
    const uint stage = tiles_of_memory + stage_of * RECUR_DELTA_STAGE_BYTES;
    const uint squares = stage + RECUR_DELTA_OPERAND_BYTES;
    const local float* since =
        (const local float*)(memory + stage_of * RECUR_DELTA_STAGE_BYTES + RECUR_DELTA_OPERAND_BYTES + RECUR_DELTA_NUMBERS);
    const local float *until = since + DELTA_CHUNK, *beta = until + DELTA_CHUNK;
    kept -= kept_pitch;
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (STAGES == 2 && first > 0)
      copy_chunk(tiles_of_memory + (stage_of ^ 1) * RECUR_DELTA_STAGE_BYTES, &keys, &queries, kept, DELTA_CHUNK, item);
    if (present) keep_state(kept_states, state, at);
    const bool marked = ((const local int*)since)[DELTA_MARK] != 0;
    bool by_steps = marked;
    if (!marked) {
      float x[4], y[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      take_held(x, y, stage, states, at);
      add_weighed(y, squares + 2 * RECUR_DELTA_SQUARE, missing, GIVEN, true, at);
      UNROLL for (uint i = 0; i < 4; ++i) x[i] = fma(until[TOKEN_OF_WORD(i / 2)], x[i], y[i] * ARGS(scale));
      bool odd = store_missing(missing, x, at);
      UNROLL for (uint i = 0; i < 2; ++i) {
        const float d = since[TOKEN_OF_WORD(i)] * ARGS(scale);
        const float2 its = unpack_pair(output[i]);
        y[2 * i] = its.s0 * d, y[2 * i + 1] = its.s1 * d;
      }
      odd = odd || rows_are_odd(y);
      store_halves(changes, DECAYED, 2, y, at);
      load_rows(output, &given, present, first - DELTA_CHUNK, length, at);
      if (item == 0) FLAG(parity ^ 1) = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      take_solved(x, squares, missing, true, at);
      if (present) keep_rows(kept_changes, ARGS(value_dim), x, at);
      UNROLL for (uint i = 0; i < 4; ++i) {
        x[i] *= beta[TOKEN_OF_WORD(i / 2)];
        y[i] = -since[TOKEN_OF_WORD(i / 2)] * x[i];
      }
      odd = odd || rows_are_odd(x) || rows_are_odd(y);
      store_halves(changes, LEAVING, 2, y, at);
      if (odd) FLAG(parity) = 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      by_steps = FLAG(parity) != 0;
      parity ^= 1;
      if (!by_steps) {
        uint rounded[2];
        pack_rows(rounded, x);
        write_rows(&dvalues, rounded, wants_values, count, at);
        UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) state[i] *= since[DELTA_CHUNK - 1];
        add_to_state(state, stage + RECUR_MMA_KEY_BYTES, changes, DECAYED, DECAYED + 2, at);
        add_to_state(state, stage, changes, LEAVING, LEAVING + 2, at);
      }
    }
    if (by_steps) {
      ROLLED for (uint t = count; t-- > 0;) {
        const uint token = token_of(args, place, first + t);
        float its[2] = {0.0f, 0.0f}, change[2];
        UNROLL for (uint r = 0; r < 2; ++r)
          if (present)
            its[r] = ARGS(scale) * load_scalar(doutput_elements, row_of(args->result, place, token) + own_column +
                                                                     OWN_COLUMN(4 * r));
        take_delta_step_back(state, change, stage, t, its, shared_decay(&on, args, place, 0.0f, first + t, length), beta[t],
                             shares, at);
        UNROLL for (uint r = 0; r < 2; ++r) {
          if (!present || at.warp != 0 || at.lane % 4 != 0) continue;
          kept_changes[t * ARGS(value_dim) + OWN_COLUMN(4 * r)] = change[r];
          if (wants_values)
            store_scalar(beta[t] * change[r], dvalue_elements + row_of(args->dvalue, place, token) + own_column,
                         OWN_COLUMN(4 * r));
        }
      }
    }
    if (marked) load_rows(output, &given, present, first - DELTA_CHUNK, length, at);
    store_state(states, state, at);
    store_rows(missing, GIVEN, output, at);
    NEXT_CHUNK(&dvalues)
    kept_states -= (size_t)heads * ARGS(value_dim) * KEY_DIM;
    kept_changes -= (size_t)heads * ARGS(value_dim) * DELTA_CHUNK;
    behind = first;
    if (STAGES == 2) {
      stage_of ^= 1;
    } else {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (first > 0) copy_chunk(tiles_of_memory, &keys, &queries, kept, DELTA_CHUNK, item);
    }
  }

  if (RECUR_HAS(RECUR_GRAD_INITIAL) && present)
    save_state(dinitial_elements + STATE_AT(dinitial), ARGS(dinitial.row), state, at);
}
