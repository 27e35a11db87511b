// SPDX-License-Identifier: Apache-2.0
// What     A delta rule by chunks of 64 tokens, from what delta_chunks has left: missing = value - d state^T key, changes =
//          solution beta missing, output = scale (d state^T query + weights changes), state = decay state + key changes^T.
// Who      A work-group owns WG_X / 16 columns of a sequence in a head (delta_scan.clh).
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, STAGES - 1
//          chunks ahead; values and outputs once. RECUR_OUTPUTS = 0: for gradients, of each chunk the state before it and
//          the changes go to scratch as floats.
// Numerics Float sums of products of f16 or bf16. Of what stays in the state nothing is rounded to those: the state, what is
//          missing, changes and the solution are each the sum of two such numbers (missing and solution of bfloat16).
//          For outputs state and changes are rounded. Chunks that delta_chunks has marked, or where something here is not
//          finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#ifndef RECUR_OUTPUTS
#define RECUR_OUTPUTS 1
#endif
#define DELTA_BACK 0
#define DELTA_QUERIES RECUR_OUTPUTS
#include "recurrence/mma/delta_scan.clh"

// Token t of a stage: its share of the state decays, and what that holds for the key moves towards `value`, of columns
// lane / 4 and 8 more. `shares` gets those of outputs behind those of what is held.
INLINE void take_delta_step(float* state, float* change, uint stage, uint t, const float* value, float log_decay,
                            float beta, local float* shares, Worker at) {
  const float2 decay = decay_shares(log_decay);
  float sum[2] = {0.0f, 0.0f};
  EACH_PAIR(0, {
    h[0] = h[0] * decay.s0 * decay.s1;
    h[1] = h[1] * decay.s0 * decay.s1;
    sum[r] = fma(x.s1, h[1], fma(x.s0, h[0], sum[r]));
  })
  share_sums(shares, sum, at);
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint r = 0; r < 2; ++r) {
    change[r] = beta * (value[r] - shared_sum(shares, at.team, at.lane / 4 + r * 8));
    sum[r] = 0.0f;
  }
  EACH_PAIR(0, {
    h[0] = fma(x.s0, change[r], h[0]);
    h[1] = fma(x.s1, change[r], h[1]);
  })
#if RECUR_OUTPUTS
  EACH_PAIR(RECUR_MMA_KEY_BYTES, { sum[r] = fma(x.s1, h[1], fma(x.s0, h[0], sum[r])); })
  share_sums(shares + TEAMS * RECUR_DELTA_WARPS * 16, sum, at);
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
}

KERNEL void recurrence_delta_mma(const global scalar* restrict query_elements,
                                 const global scalar* restrict key_elements,
                                 const global scalar* restrict value_elements,
                                 const global void* restrict beta_elements, const global void* restrict g_elements,
                                 const global float* restrict initial_elements, global scalar* restrict output_elements,
                                 global float* restrict final_elements, global float* restrict scratch,
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
  const bool some = sequence < ARGS(sequences);
  const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
  Place place = {.batch = 0, .head = head, .begin = ARGS(tokens), .end = ARGS(tokens)};
  if (some) place = place_of_sequence(args, boundaries, sequence, head);
  if (RECUR_OUTPUTS && RECUR_HAS(RECUR_PACKED) && present)
    clear_rows(output_elements, args, args->result, place, sequence, own_column, at);
  if (!some) return;
  const uint length = place.end - place.begin;
  const uint slot = RECUR_DELTA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence);
  const global uchar* kept = chunk_scratch(scratch, args, slot, head);
  const size_t kept_pitch = (size_t)heads * RECUR_DELTA_CHUNK_BYTES;
  const Operands on = {.gate = g_elements};

  float state[8 * OWN_STEPS];
  UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) state[i] = 0.0f;
  if (RECUR_HAS(RECUR_INITIAL) && present)
    load_state(state, initial_elements + STATE_AT(initial_state), ARGS(initial_state.row), at);
  const uint states = tiles_of_memory + RECUR_DELTA_STATES + at.team * 2 * RECUR_DELTA_STATE_BYTES;
  const uint missing = tiles_of_memory + RECUR_DELTA_MISSING + at.team * 128;
  const uint changes = tiles_of_memory + RECUR_DELTA_CHANGES + at.team * 128;
  store_state(states, state, at);
  if (item < 2) FLAG(item) = 0;

  const uint key_row = item / ROW_ITEMS, key_column = item % ROW_ITEMS * 8;
  const uint word_column = own_column + at.eight * 8 + at.lane % 4 * 2;
  Rows keys = rows_of(key_elements, args, place, args->key, 0, key_row, key_column);
  Rows queries = rows_of(query_elements, args, place, args->query, 0, key_row, key_column);
  Rows values = rows_of(value_elements, args, place, args->value, 0, TOKEN_OF_WORD(0), word_column);
  Rows outputs = rows_of(output_elements, args, place, args->result, 0, TOKEN_OF_WORD(0), word_column);
#if !RECUR_OUTPUTS
  global float* kept_states = kept_state(scratch, args, ARGS(states), slot, head) + own_column * KEY_DIM;
  global float* kept_changes = kept_rows(scratch, args, ARGS(changes), slot, head) + own_column;
#endif
  uint value[2] = {0, 0};
  uint stage_of = 0, parity = 0;
  if (length > 0) {
    copy_chunk(tiles_of_memory, &keys, &queries, kept, tokens_of(length), item);
    load_rows(value, &values, present, 0, length, at);
  }
  ROLLED for (uint first = 0; first < length; first += DELTA_CHUNK) {
    const uint count = tokens_of(length - first), next = first + DELTA_CHUNK;
    const uint stage = tiles_of_memory + stage_of * RECUR_DELTA_STAGE_BYTES;
    const uint squares = stage + RECUR_DELTA_OPERAND_BYTES;
    const local float* since =
        (const local float*)(memory + stage_of * RECUR_DELTA_STAGE_BYTES + RECUR_DELTA_OPERAND_BYTES + RECUR_DELTA_NUMBERS);
    const local float *until = since + DELTA_CHUNK, *beta = until + DELTA_CHUNK;
    kept += kept_pitch;
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (STAGES == 2 && next < length)
      copy_chunk(tiles_of_memory + (stage_of ^ 1) * RECUR_DELTA_STAGE_BYTES, &keys, &queries, kept,
                 tokens_of(length - next), item);
#if !RECUR_OUTPUTS
    if (present) keep_state(kept_states, state, at);
#endif
    const bool marked = ((const local int*)since)[DELTA_MARK] != 0;
    bool by_steps = marked;
    float output[4];
    if (!marked) {
      float x[4];
      take_held(x, output, stage, states, at);
      UNROLL for (uint i = 0; i < 2; ++i) {
        const float d = since[TOKEN_OF_WORD(i)], share = beta[TOKEN_OF_WORD(i)];
        const float2 wanted = unpack_pair(value[i]);
        x[2 * i] = fma(-d, x[2 * i], wanted.s0) * share;
        x[2 * i + 1] = fma(-d, x[2 * i + 1], wanted.s1) * share;
        output[2 * i] *= d, output[2 * i + 1] *= d;
      }
      bool odd = store_missing(missing, x, at);
      load_rows(value, &values, present, next, length, at);
      if (item == 0) FLAG(parity ^ 1) = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      take_solved(x, squares, missing, false, at);
#if RECUR_OUTPUTS
      uint rounded[2];
      pack_rows(rounded, x);
      store_rows(changes, 0, rounded, at);
#else
      if (present) keep_rows(kept_changes, ARGS(value_dim), x, at);
#endif
      odd = odd || rows_are_odd(x);
      UNROLL for (uint i = 0; i < 4; ++i) x[i] *= until[TOKEN_OF_WORD(i / 2)];
      store_halves(changes, 2, 2, x, at);
      if (odd) FLAG(parity) = 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      by_steps = FLAG(parity) != 0;
      parity ^= 1;
    }
    if (by_steps) {
      ROLLED for (uint t = 0; t < count; ++t) {
        const uint token = token_of(args, place, first + t);
        float wanted[2] = {0.0f, 0.0f}, change[2];
        UNROLL for (uint r = 0; r < 2; ++r)
          if (present)
            wanted[r] =
                load_scalar(value_elements, row_of(args->value, place, token) + own_column + OWN_COLUMN(4 * r));
        take_delta_step(state, change, stage, t, wanted, shared_decay(&on, args, place, 0.0f, first + t, length), beta[t],
                        shares, at);
#if RECUR_OUTPUTS
        if (present && at.warp == 0 && at.lane < 16)
          store_scalar(shared_sum(shares + TEAMS * RECUR_DELTA_WARPS * 16, at.team, at.lane) * ARGS(scale),
                       output_elements + row_of(args->result, place, token) + own_column, at.lane);
#else
        UNROLL for (uint r = 0; r < 2; ++r)
          if (present && at.warp == 0 && at.lane % 4 == 0)
            kept_changes[t * ARGS(value_dim) + OWN_COLUMN(4 * r)] = change[r];
#endif
      }
      if (marked) load_rows(value, &values, present, next, length, at);
    } else {
#if RECUR_OUTPUTS
      add_weighed(output, squares + 2 * RECUR_DELTA_SQUARE, changes, 0, false, at);
      UNROLL for (uint i = 0; i < 4; ++i) output[i] *= ARGS(scale);
      uint rounded[2];
      pack_rows(rounded, output);
      write_rows(&outputs, rounded, present, count, at);
#endif
      UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) state[i] *= since[DELTA_CHUNK - 1];
      add_to_state(state, stage, changes, 2, 4, at);
    }
    store_state(states, state, at);
    NEXT_CHUNK(&outputs)
#if !RECUR_OUTPUTS
    kept_states += (size_t)heads * ARGS(value_dim) * KEY_DIM;
    kept_changes += (size_t)heads * ARGS(value_dim) * DELTA_CHUNK;
#endif
    if (STAGES == 2) {
      stage_of ^= 1;
    } else {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (next < length)
        copy_chunk(tiles_of_memory, &keys, &queries, kept, tokens_of(length - next), item);
    }
  }

  if (RECUR_HAS(RECUR_FINAL) && present)
    save_state(final_elements + STATE_AT(final_state), ARGS(final_state.row), state, at);
}
