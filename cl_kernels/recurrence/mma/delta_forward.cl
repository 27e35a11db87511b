// SPDX-License-Identifier: Apache-2.0
// What     A delta rule by chunks of 64 tokens, from what delta_chunks has left: missing = value - d state^T key, changes =
//          solution missing, output = scale (d state^T query + weights changes), state = decay state + key changes^T.
// Who      A work-group owns WG_X / 16 columns of a sequence in a head, eight warps sixteen of them. Each of those takes 16
//          tokens of a chunk for eight columns, and holds every eighth sixteen of the state's key dims in registers,
//          transposed, for all sixteen.
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, STAGES - 1
//          chunks ahead; values and outputs once.
// Numerics Float sums of products of f16 or bf16. Of what stays in the state nothing is rounded to those: the state, what is
//          missing, changes and the solution are each the sum of two such numbers (missing and solution of bfloat16).
//          For outputs state and changes are rounded. Chunks that delta_chunks has marked, or where something here is not
//          finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#include "recurrence/mma/delta.clh"

#define TEAMS RECUR_DELTA_TEAMS
#define OWN_STEPS MMA_CEIL_DIV(STEPS, RECUR_DELTA_WARPS)  // sixteens of key dims of a warp
#define ROW_PITCH RECUR_DELTA_ROW_PITCH
#define FLAG(n) flags[n]
// Of tiles of rows of tokens, by chunks of 16 bytes.
#define CHANGES_HIGH 2
#define CHANGES_LOW 4
#define MISSING_LOW 2

// Where an item of a team is: its lane and warp; of a chunk the sixteen tokens and the eight columns of the warp.
typedef struct {
  uint lane, warp, team, sixteen, eight;
} Worker;

// Words of rows lane / 4 and 8 more of the sixteen of a warp, columns lane % 4 * 2 of its eight.
INLINE void store_rows(uint tile, uint chunk, const uint* words, Worker at) {
  UNROLL for (uint i = 0; i < 2; ++i) {
    const uint row = at.sixteen * 16 + at.lane / 4 + i * 8;
    store_local(tile + row * ROW_PITCH + (chunk + at.eight ^ row % 8) * 16 + at.lane % 4 * 4, words[i]);
  }
}
INLINE void pack_rows(uint* words, const float* x) {
  UNROLL for (uint i = 0; i < 2; ++i) words[i] = pack_scalars(x[2 * i], x[2 * i + 1]);
}

// The state's halves, for products with rows of key dims.
INLINE void store_state(uint tile, const float* state, Worker at) {
  UNROLL for (uint n = 0; n < OWN_STEPS; ++n) {
    const uint step = at.warp + n * RECUR_DELTA_WARPS;
    if (step >= STEPS) continue;
    UNROLL for (uint i = 0; i < 4; ++i) {
      const float x = state[8 * n + 2 * i], y = state[8 * n + 2 * i + 1];
      const uint column = at.lane / 4 + i / 2 * 8, pair = step * 8 + i % 2 * 4 + at.lane % 4;
      const uint to = tile + column * KEY_PITCH + place_of_pair(column, pair), high = pack_scalars(x, y);
      const float2 rounded = unpack_pair(high);
      store_local(to, high);
      store_local(to + RECUR_DELTA_STATE_BYTES, pack_scalars(x - rounded.s0, y - rounded.s1));
    }
  }
}

// Of the warp's tokens: what the state holds for their keys and for their queries.
INLINE void take_held(float* held, float* output, uint stage, uint state, Worker at) {
  float low[4];
  UNROLL for (uint i = 0; i < 4; ++i) held[i] = low[i] = output[i] = 0.0f;
  const uint row = stage + at.sixteen * 16 * KEY_PITCH + mma_place_of_a(at.lane, KEY_PITCH);
  const uint column = state + at.eight * 8 * KEY_PITCH + place_of_eight(at.lane, KEY_PITCH);
  uint high_half[4], low_half[4];
  UNROLL for (uint step = 0; step < STEPS; ++step) {
    uint key[4], query[4];
    if (step % 2 == 0) {
      mma_load_blocks(high_half, MMA_CHUNK(column, 2 * step));
      mma_load_blocks(low_half, MMA_CHUNK(column + RECUR_DELTA_STATE_BYTES, 2 * step));
    }
    const uint i = step % 2 * 2;
    mma_load_blocks(key, MMA_CHUNK(row, 2 * step));
    mma_load_blocks(query, MMA_CHUNK(row + RECUR_MMA_KEY_BYTES, 2 * step));
    mma_multiply_add(held, held + 2, key, high_half[i], high_half[i + 1]);
    mma_multiply_add(low, low + 2, key, low_half[i], low_half[i + 1]);
    mma_multiply_add(output, output + 2, query, high_half[i], high_half[i + 1]);
  }
  UNROLL for (uint i = 0; i < 4; ++i) held[i] += low[i];
}

// The changes of the warp's tokens.
INLINE void take_changes(float* change, uint squares, uint missing, Worker at) {
  float low[4], its_low[4];
  UNROLL for (uint i = 0; i < 4; ++i) change[i] = low[i] = its_low[i] = 0.0f;
  const uint row = squares + at.sixteen * 16 * 128 + mma_place_of_a(at.lane, 128);
  // Both halves of what is missing at once.
  const uint rows =
      missing + at.lane % 16 * ROW_PITCH + (at.eight + at.lane / 16 * MISSING_LOW ^ at.lane % 8) * 16;
  UNROLL for (uint k = 0; k < SIXTEENS; ++k) {
    if (k > at.sixteen) continue;
    uint solution[4], solution_low[4], wanted[4];
    mma_load_blocks(solution, MMA_CHUNK(row, 2 * k));
    mma_load_blocks(solution_low, MMA_CHUNK(row + RECUR_DELTA_SQUARE, 2 * k));
    mma_load_blocks_transposed(wanted, rows + k * 16 * ROW_PITCH);
    mma_multiply_add_bfloat16(change, change + 2, solution, wanted[0], wanted[1]);
    mma_multiply_add_bfloat16(low, low + 2, solution_low, wanted[0], wanted[1]);
    mma_multiply_add_bfloat16(its_low, its_low + 2, solution, wanted[2], wanted[3]);
  }
  UNROLL for (uint i = 0; i < 4; ++i) change[i] += low[i] + its_low[i];
}

INLINE void add_weighed(float* output, uint weights, uint changes, Worker at) {
  const uint row = weights + at.sixteen * 16 * 128 + mma_place_of_a(at.lane, 128);
  const uint rows = changes + at.lane * ROW_PITCH + (at.eight ^ at.lane % 8) * 16;
  uint change[4];
  UNROLL for (uint k = 0; k < SIXTEENS; ++k) {
    if (k > at.sixteen) continue;
    uint weight[4];
    mma_load_blocks(weight, MMA_CHUNK(row, 2 * k));
    if (k % 2 == 0) mma_load_blocks_transposed(change, rows + k * 16 * ROW_PITCH);
    mma_multiply_add(output, output + 2, weight, change[k % 2 * 2], change[k % 2 * 2 + 1]);
  }
}

INLINE void add_to_state(float* state, uint stage, uint changes, float decay, Worker at) {
  UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) state[i] *= decay;
  UNROLL for (uint k = 0; k < SIXTEENS; ++k) {
    const uint rows = changes + k * 16 * ROW_PITCH + mma_place_of_b(at.lane, ROW_PITCH);
    uint high[4], low[4];
    mma_load_blocks_transposed(high, MMA_CHUNK(rows, CHANGES_HIGH));
    mma_load_blocks_transposed(low, MMA_CHUNK(rows, CHANGES_LOW));
    UNROLL for (uint n = 0; n < OWN_STEPS; ++n) {
      const uint step = at.warp + n * RECUR_DELTA_WARPS;
      if (step >= STEPS) continue;
      const uint from = stage + k * 16 * KEY_PITCH + mma_place_of_a(at.lane, KEY_PITCH);
      float* h = state + 8 * n;
      uint key[4];
      mma_load_blocks_transposed(key, (from ^ 2 * step % 8 * 16) + 2 * step / 8 * 128);
      mma_multiply_add(h, h + 4, high, key[0], key[1]);
      mma_multiply_add(h + 2, h + 6, high, key[2], key[3]);
      mma_multiply_add(h, h + 4, low, key[0], key[1]);
      mma_multiply_add(h + 2, h + 6, low, key[2], key[3]);
    }
  }
}

// Sums over key dims, of columns lane / 4 and 8 more: those of four warps add up.
INLINE void share_sums(local float* shares, const float* sum, Worker at) {
  UNROLL for (uint r = 0; r < 2; ++r) {
    const float x = quad_sum(sum[r]);
    if (at.lane % 4 == 0) shares[(at.team * RECUR_DELTA_WARPS + at.warp) * 16 + at.lane / 4 + r * 8] = x;
  }
}
INLINE float shared_sum(const local float* shares, uint team, uint column) {
  const local float* its = shares + team * RECUR_DELTA_WARPS * 16 + column;
  float sum = 0.0f;
  UNROLL for (uint warp = 0; warp < RECUR_DELTA_WARPS; ++warp) sum += its[16 * warp];
  return sum;
}

// Token t of a stage: its share of the state decays, and what that holds for the key moves towards `value`, of columns
// lane / 4 and 8 more. `shares` gets those of outputs behind those of what is held.
INLINE void take_delta_step(float* state, uint stage, uint t, const float* value, float log_decay, float beta,
                            local float* shares, Worker at) {
  const float2 decay = decay_shares(log_decay);
  float sum[2] = {0.0f, 0.0f};
#define EACH_PAIR(rows, use)                                                                                      \
  UNROLL for (uint n = 0; n < OWN_STEPS; ++n) {                                                                   \
    const uint step = at.warp + n * RECUR_DELTA_WARPS;                                                            \
    if (step >= STEPS) continue;                                                                                  \
    UNROLL for (uint i = 0; i < 4; ++i) {                                                                         \
      const uint place = t * KEY_PITCH + place_of_pair(t, step * 8 + i % 2 * 4 + at.lane % 4), r = i / 2;         \
      const float2 x = unpack_pair(load_local(stage + (rows) + place));                                           \
      float* h = state + 8 * n + 2 * i;                                                                           \
      use                                                                                                         \
    }                                                                                                             \
  }
  EACH_PAIR(0, {
    h[0] = h[0] * decay.s0 * decay.s1;
    h[1] = h[1] * decay.s0 * decay.s1;
    sum[r] = fma(x.s1, h[1], fma(x.s0, h[0], sum[r]));
  })
  share_sums(shares, sum, at);
  barrier(CLK_LOCAL_MEM_FENCE);
  float change[2];
  UNROLL for (uint r = 0; r < 2; ++r) {
    change[r] = beta * (value[r] - shared_sum(shares, at.team, at.lane / 4 + r * 8));
    sum[r] = 0.0f;
  }
  EACH_PAIR(0, {
    h[0] = fma(x.s0, change[r], h[0]);
    h[1] = fma(x.s1, change[r], h[1]);
  })
  EACH_PAIR(RECUR_MMA_KEY_BYTES, { sum[r] = fma(x.s1, h[1], fma(x.s0, h[0], sum[r])); })
  share_sums(shares + TEAMS * RECUR_DELTA_WARPS * 16, sum, at);
  barrier(CLK_LOCAL_MEM_FENCE);
}

// An item's elements of rows of tokens of an operand: those of its first row in the chunk that comes next, and from a row
// to the next one, in bytes.
typedef struct {
  global uchar* at;
  long step;
} Rows;
INLINE Rows rows_of(const global scalar* elements, const struct RecurArgs* args, Place place, struct RecurRows rows,
                    uint row, uint column) {
  const long step = (RECUR_HAS(RECUR_REVERSE) ? -2l : 2l) * rows.token;
  const Rows result = {
      .at = (global uchar*)(elements + row_of(rows, place, token_of(args, place, 0)) + column) + row * step,
      .step = step};
  return result;
}

// Items that copy a row of keys, of which some may have nothing to copy, and rows that are copied at once.
#define ROW_ITEMS (KEY_DIM <= 64 ? 8 : KEY_DIM <= 128 ? 16 : 32)
#define COPIED_ROWS (WG_X / ROW_ITEMS)
INLINE void copy_rows(uint to, Rows* rows, uint count, uint item) {
  const uint row = item / ROW_ITEMS, chunk = item % ROW_ITEMS;
  const uint place = to + row * KEY_PITCH + (chunk % 8 ^ row % 8) * 16 + chunk / 8 * 128;
  if (KEY_DIM / 8 == ROW_ITEMS || chunk < KEY_DIM / 8) {
    UNROLL for (uint n = 0; n < DELTA_CHUNK; n += COPIED_ROWS)
      mma_copy_start(place + n * KEY_PITCH, rows->at + n * rows->step, row + n < count ? 16 : 0);
  }
  rows->at += DELTA_CHUNK * rows->step;
}
INLINE void copy_chunk(uint to, Rows* keys, Rows* queries, const global uchar* from, uint count, uint item) {
  copy_rows(to, keys, count, item);
  copy_rows(to + RECUR_MMA_KEY_BYTES, queries, count, item);
  const uint squares = to + RECUR_DELTA_OPERAND_BYTES;
  UNROLL for (uint n = 0; n < DELTA_CHUNK * 8 / WG_X; ++n) {
    const uint i = item + n * WG_X, row = i / 8, chunk = i % 8;
    if (!IN_TRIANGLE(row, chunk)) continue;
    UNROLL for (uint square = 0; square < 3; ++square)
      mma_copy_start(squares + square * RECUR_DELTA_SQUARE + row * 128 + (chunk ^ row % 8) * 16,
                     from + square * RECUR_DELTA_SQUARE + 16 * i, 16);
  }
  if (item < RECUR_DELTA_NUMBER_BYTES / 16)
    mma_copy_start(squares + RECUR_DELTA_NUMBERS + 16 * item, from + RECUR_DELTA_NUMBERS + 16 * item, 16);
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

  const uint item = (uint)get_local_id(0), warps = (uint)uniform((int)(item / 32));
  const uint own_warp = warps % RECUR_DELTA_WARPS;
  const Worker at = {.lane = item % 32,
                     .warp = own_warp,
                     .team = warps / RECUR_DELTA_WARPS,
                     .sixteen = own_warp % SIXTEENS,
                     .eight = own_warp / SIXTEENS};
  const uint lane = at.lane;
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
#define OUTPUT_AT(token) (output_elements + row_of(args->result, place, token) + own_column)
  if (RECUR_HAS(RECUR_PACKED) && present) {  // rows of no sequence
    const uint before = sequence == 0 ? place.begin : 0;
    const uint behind = sequence + 1 >= ARGS(sequences) ? place.end : ARGS(tokens);
    for (uint token = at.warp * 4 + lane / 8; token < before; token += 4 * RECUR_DELTA_WARPS)
      *(global uint*)(OUTPUT_AT(token) + lane % 8 * 2) = 0;
    for (uint token = behind + at.warp * 4 + lane / 8; token < ARGS(tokens); token += 4 * RECUR_DELTA_WARPS)
      *(global uint*)(OUTPUT_AT(token) + lane % 8 * 2) = 0;
  }
  if (!some) return;
  const uint length = place.end - place.begin;
  const uint slot = RECUR_DELTA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence);
  const global uchar* kept = chunk_scratch(scratch, args, slot, head);
  const size_t kept_pitch = (size_t)heads * RECUR_DELTA_CHUNK_BYTES;
  const Operands on = {.gate = g_elements};

  // Key dim of number i of the state, and its column.
#define OWN_KEY(i) ((at.warp + (i) / 8 * RECUR_DELTA_WARPS) * 16 + (i) / 2 % 2 * 8 + lane % 4 * 2 + (i) % 2)
#define OWN_COLUMN(i) (own_column + lane / 4 + (i) / 4 % 2 * 8)
  float state[8 * OWN_STEPS];
  UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i) {
    state[i] = 0.0f;
    if (RECUR_HAS(RECUR_INITIAL) && present && OWN_KEY(i) < KEY_DIM)
      state[i] = initial_elements[ARGS(initial_state.offset) + sequence * ARGS(initial_state.sequence) +
                                  head * ARGS(initial_state.head) + OWN_KEY(i) * ARGS(initial_state.row) + OWN_COLUMN(i)];
  }
  const uint states = tiles_of_memory + RECUR_DELTA_STATES + at.team * 2 * RECUR_DELTA_STATE_BYTES;
  const uint missing = tiles_of_memory + RECUR_DELTA_MISSING + at.team * 128;
  const uint changes = tiles_of_memory + RECUR_DELTA_CHANGES + at.team * 128;
  store_state(states, state, at);
  if (item < 2) FLAG(item) = 0;

  // Values of a chunk, as store_rows() has them.
#define TOKEN_OF_WORD(i) (at.sixteen * 16 + lane / 4 + (i)*8)
#define LOAD_VALUES(first)                                                                                             \
  UNROLL for (uint i = 0; i < 2; ++i) {                                                                                \
    value[i] = 0;                                                                                                      \
    if (present && (first) + TOKEN_OF_WORD(i) < length) value[i] = *(const global uint*)(values.at + 8 * i * values.step); \
  }                                                                                                                    \
  values.at += DELTA_CHUNK * values.step;
  const uint key_row = item / ROW_ITEMS, key_column = item % ROW_ITEMS * 8;
  const uint word_column = own_column + at.eight * 8 + lane % 4 * 2;
  Rows keys = rows_of(key_elements, args, place, args->key, key_row, key_column);
  Rows queries = rows_of(query_elements, args, place, args->query, key_row, key_column);
  Rows values = rows_of(value_elements, args, place, args->value, TOKEN_OF_WORD(0), word_column);
  Rows outputs = rows_of(output_elements, args, place, args->result, TOKEN_OF_WORD(0), word_column);
  uint value[2] = {0, 0};
  uint stage_of = 0, parity = 0;
  if (length > 0) {
    copy_chunk(tiles_of_memory, &keys, &queries, kept, tokens_of(length), item);
    LOAD_VALUES(0)
  }
  ROLLED for (uint first = 0; first < length; first += DELTA_CHUNK) {
    const uint count = tokens_of(length - first), next = first + DELTA_CHUNK;
    const uint stage = tiles_of_memory + stage_of * RECUR_DELTA_STAGE_BYTES;
    const uint squares = stage + RECUR_DELTA_OPERAND_BYTES;
    const local float* since =
        (const local float*)(memory + stage_of * RECUR_DELTA_STAGE_BYTES + RECUR_DELTA_OPERAND_BYTES + RECUR_DELTA_NUMBERS);
    const local float* until = since + DELTA_CHUNK;
    kept += kept_pitch;
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (STAGES == 2 && next < length)
      copy_chunk(tiles_of_memory + (stage_of ^ 1) * RECUR_DELTA_STAGE_BYTES, &keys, &queries, kept,
                 tokens_of(length - next), item);
    bool by_steps = ((const local int*)until)[DELTA_CHUNK] != 0;
    float output[4];
    if (!by_steps) {
      float x[4];
      uint high[2], low[2];
      take_held(x, output, stage, states, at);
      bool odd = false;
      UNROLL for (uint i = 0; i < 2; ++i) {
        const float d = since[TOKEN_OF_WORD(i)];
        const float2 wanted = unpack_pair(value[i]);
        x[2 * i] = fma(-d, x[2 * i], wanted.s0);
        x[2 * i + 1] = fma(-d, x[2 * i + 1], wanted.s1);
        output[2 * i] *= d, output[2 * i + 1] *= d;
        odd = odd || !(fabs(x[2 * i]) <= LARGEST_BFLOAT16 && fabs(x[2 * i + 1]) <= LARGEST_BFLOAT16);
        high[i] = pack_bfloat16(x[2 * i], x[2 * i + 1]);
        low[i] = pack_bfloat16(x[2 * i] - as_float(high[i] << 16), x[2 * i + 1] - as_float(high[i] & 0xffff0000u));
      }
      store_rows(missing, 0, high, at);
      store_rows(missing, MISSING_LOW, low, at);
      LOAD_VALUES(next)
      if (item == 0) FLAG(parity ^ 1) = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      take_changes(x, squares, missing, at);
      pack_rows(high, x);
      store_rows(changes, 0, high, at);
      UNROLL for (uint i = 0; i < 4; ++i) {
        odd = odd || !(fabs(x[i]) <= LARGEST_SCALAR);
        x[i] *= until[TOKEN_OF_WORD(i / 2)];
      }
      pack_rows(high, x);
      store_rows(changes, CHANGES_HIGH, high, at);
      UNROLL for (uint i = 0; i < 2; ++i) {
        const float2 rounded = unpack_pair(high[i]);
        low[i] = pack_scalars(x[2 * i] - rounded.s0, x[2 * i + 1] - rounded.s1);
      }
      store_rows(changes, CHANGES_LOW, low, at);
      if (odd) FLAG(parity) = 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      by_steps = FLAG(parity) != 0;
      parity ^= 1;
    }
    if (by_steps) {
      ROLLED for (uint t = 0; t < count; ++t) {
        const uint token = token_of(args, place, first + t);
        float wanted[2] = {0.0f, 0.0f};
        UNROLL for (uint r = 0; r < 2; ++r)
          if (present) wanted[r] = load_scalar(value_elements, row_of(args->value, place, token) + OWN_COLUMN(4 * r));
        take_delta_step(state, stage, t, wanted, shared_decay(&on, args, place, 0.0f, first + t, length),
                        beta_of(beta_elements, args, place, token), shares, at);
        if (present && at.warp == 0 && lane < 16)
          store_scalar(shared_sum(shares + TEAMS * RECUR_DELTA_WARPS * 16, at.team, lane) * ARGS(scale), OUTPUT_AT(token),
                       lane);
      }
      LOAD_VALUES(next)
    } else {
      add_weighed(output, squares + 2 * RECUR_DELTA_SQUARE, changes, at);
      UNROLL for (uint i = 0; i < 2; ++i) {
        if (TOKEN_OF_WORD(i) >= count || !present) continue;
        *(global uint*)(outputs.at + 8 * i * outputs.step) =
            pack_scalars(output[2 * i] * ARGS(scale), output[2 * i + 1] * ARGS(scale));
      }
      add_to_state(state, stage, changes, since[DELTA_CHUNK - 1], at);
    }
    store_state(states, state, at);
    outputs.at += DELTA_CHUNK * outputs.step;
    if (STAGES == 2) {
      stage_of ^= 1;
    } else {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (next < length)
        copy_chunk(tiles_of_memory, &keys, &queries, kept, tokens_of(length - next), item);
    }
  }

  if (RECUR_HAS(RECUR_FINAL) && present) {
    global float* to =
        final_elements + ARGS(final_state.offset) + sequence * ARGS(final_state.sequence) + head * ARGS(final_state.head);
    UNROLL for (uint i = 0; i < 8 * OWN_STEPS; ++i)
      if (OWN_KEY(i) < KEY_DIM) to[OWN_KEY(i) * ARGS(final_state.row) + OWN_COLUMN(i)] = state[i];
  }
}
