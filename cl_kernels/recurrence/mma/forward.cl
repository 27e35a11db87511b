// SPDX-License-Identifier: Apache-2.0
// What     A recurrence by chunks of 16 tokens: state = decay * state + key value^T, output = scale state^T query. With
//          RECUR_OUTPUTS=0, what spans of a sequence make of an empty state, and their factors; with RECUR_KEEPS=1,
//          too, the states before all chunks. With RECUR_GOES_BACK=1 of the gradient of the state, behind all chunks.
// Who      A work-group owns WG_X / 2 columns of a span of a sequence in a head, a warp 16 of them, whose state is in
//          its registers, transposed. It takes TOKENS tokens at a time, in order.
// Memory   Operands once for each tile of columns, by asynchronous copies, STAGES - 1 blocks ahead; a state of each span.
// Numerics Float sums of products of f16 or bf16. Rounded to those are queries and keys times factors (values, where key
//          dims decay alike), weights of values, and, where it is multiplied, the state, which itself stays in floats.
//          Blocks with factors above 1, with what is not finite, or with f16 whose sums f16 may not hold, are taken step
//          by step in floats, as are all behind them once the state is not finite.
// Assumes  sm_80, RECUR_MMA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#include "recurrence/mma/chunks.clh"

#ifndef RECUR_KEEPS
#define RECUR_KEEPS 0
#endif
#define RECUR_CARRIES (RECUR_OUTPUTS || RECUR_KEEPS)  // from the first state to the last
#define FLAG(n) flags[n]

INLINE bool not_finite(const float* state) {
  float zero = 0.0f;
  UNROLL for (uint i = 0; i < 2 * HELD; ++i) zero = fma(state[i], 0.0f, zero);
  return isnan(zero);
}
#if DTYPE == DTYPE_F16
INLINE bool too_large(const float* state) {
  float most = 0.0f;
  UNROLL for (uint i = 0; i < 2 * HELD; ++i) most = fmax(most, fabs(state[i]));
  return !(most <= MOST_STATE_OF_F16);
}
#endif

#if RECUR_KEEPS
// The states of chunks, in scratch: of a chunk value_dim rows of KEY_DIM elements of the storage type.
#define KEPT_AT(row) \
  (kept + (size_t)((RECUR_GOES_BACK ? (place.steps - first - (row)) / CHUNK - 1 : (first + (row)) / CHUNK) * heads) * state_size)
#if KEY_DIM % 32 == 0
// Four words of each of four items: item i gets word i of all.
INLINE void turn_words(float* x, uint lane) {
  UNROLL for (uint i = 0; i < 4; i += 2) {
    float other;
    BUTTERFLY(lane % 2 == 0 ? x[i + 1] : x[i], other, 1);
    if (lane % 2 == 0) x[i + 1] = other;
    else x[i] = other;
  }
  UNROLL for (uint i = 0; i < 2; ++i) {
    float other;
    BUTTERFLY(lane / 2 % 2 == 0 ? x[i + 2] : x[i], other, 2);
    if (lane / 2 % 2 == 0) x[i + 2] = other;
    else x[i] = other;
  }
}
#endif
INLINE void keep_state(global scalar* to, const float* state, uint column, uint lane) {
  UNROLL for (uint r = 0; r < 2; ++r) {
    global scalar* row = to + (column + lane / 4 + r * 8) * KEY_DIM;
#if KEY_DIM % 32 == 0
    UNROLL for (uint i = 0; i < HELD; i += 8) {
      float x[4];
      UNROLL for (uint j = 0; j < 4; ++j)
        x[j] = as_float(pack_scalars(state[r * HELD + i + 2 * j], state[r * HELD + i + 2 * j + 1]));
      turn_words(x, lane);
      *(global float4*)(row + i * 4 + lane % 4 * 8) = (float4)(x[0], x[1], x[2], x[3]);
    }
#else
    UNROLL for (uint i = 0; i < HELD; i += 2)
      *(global uint*)(row + STATE_KEY(i)) = pack_scalars(state[r * HELD + i], state[r * HELD + i + 1]);
#endif
  }
}
#endif

KERNEL void recurrence_mma(const global scalar* restrict query_elements, const global scalar* restrict key_elements,
                           const global scalar* restrict value_elements, const global void* restrict g_elements,
                           const global void* restrict gamma_elements, const global void* restrict gk_elements,
                           const global float* restrict initial_elements, global scalar* restrict output_elements,
                           global float* restrict final_elements, global float* restrict scratch,
                           const struct RecurArgs arguments) {
  const struct RecurArgs* args = &arguments;
  local uchar memory[RECUR_MMA_LOCAL_BYTES(RECUR_OUTPUTS)] __attribute__((aligned(128)));
  const uint tiles_of_memory = LOCAL_ADDRESS(memory);
  const uint levels = tiles_of_memory + RECUR_MMA_LEVEL_START(RECUR_OUTPUTS);
#if RECUR_OUTPUTS
  const uint weights = tiles_of_memory + RECUR_MMA_WEIGHTS(RECUR_OUTPUTS);
#endif
  local float* factors = (local float*)(memory + RECUR_MMA_FACTORS(RECUR_OUTPUTS));
  local float* numbers = (local float*)(memory + RECUR_MMA_NUMBERS(RECUR_OUTPUTS));
  local float *factor = numbers + 2 * TOKENS, *since = factor + TOKENS, *until = since + TOKENS;
#if !RECUR_CARRIES
  local float* totals = (local float*)(memory + RECUR_MMA_TOTALS(RECUR_OUTPUTS));
#endif
  volatile local int* flags = (volatile local int*)(memory + RECUR_MMA_FLAGS(RECUR_OUTPUTS));

  const uint item = (uint)get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint tiles = (ARGS(value_dim) + COLUMNS - 1) / COLUMNS, heads = ARGS(heads);
  const uint units = tiles * heads * max(ARGS(sequences), 1u);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint unit = group % units, span = group / units, spans = ARGS(spans);
  if (span >= spans) return;
  const uint head = unit / tiles % heads, sequence = unit / tiles / heads;
  Place place = {.batch = sequence, .head = head, .begin = 0, .end = ARGS(tokens), .column = unit % tiles * COLUMNS};
#if RECUR_CARRIES
  const uint own_column = place.column + warp * 16;  // of the warp's first
  const bool present = own_column < ARGS(value_dim);
#endif
#define OUTPUT_AT(token) (output_elements + row_of(args->result, place, token) + own_column)
  if (RECUR_HAS(RECUR_PACKED)) {
    const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
    const bool some = sequence < ARGS(sequences);
    place.batch = 0;
    place.begin = some ? (uint)boundaries[sequence] : ARGS(tokens);
    place.end = some ? (uint)boundaries[sequence + 1] : ARGS(tokens);
#if RECUR_OUTPUTS
    if (span == 0 && present) {  // rows of no sequence
      const uint before = sequence == 0 ? place.begin : 0;
      const uint behind = sequence + 1 >= ARGS(sequences) ? place.end : ARGS(tokens);
      for (uint token = lane / 8; token < before; token += 4)
        *(global uint*)(OUTPUT_AT(token) + lane % 8 * 2) = 0;
      for (uint token = behind + lane / 8; token < ARGS(tokens); token += 4)
        *(global uint*)(OUTPUT_AT(token) + lane % 8 * 2) = 0;
    }
#endif
    if (!some) return;
  }
#if RECUR_GOES_BACK
  place.steps = (place.end - place.begin + CHUNK - 1) / CHUNK * CHUNK;
  const uint length = place.steps;
#else
  const uint length = place.end - place.begin;
#endif
  const uint each = ((length + spans - 1) / spans + TOKENS - 1) / TOKENS * TOKENS;
  const uint own = min(span * each, length), stop = min(own + each, length);
  const Operands on = {.query = query_elements,
                       .key = key_elements,
                       .value = value_elements,
                       .gate = g_elements,
                       .key_decay = RECUR_HAS(RECUR_GK) ? gk_elements : g_elements};
#if RECUR_KEEPS
  const uint state_size = KEY_DIM * ARGS(value_dim);
  global scalar* kept = (global scalar*)(scratch + 4 * (size_t)ARGS(kept)) +
                        (size_t)(RECUR_MMA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence) * heads + head) *
                            state_size;
#endif
  float of_head = (float)head * ARGS(slope);
  if (RECUR_HAS(RECUR_GAMMA)) {
    const uint at = ARGS(gamma_offset) + head * ARGS(gamma_stride);
    of_head += load_typed_steps(gamma_elements, at, 0, 1, args->types >> RECUR_TYPE_GAMMA & 3u).x;
  }

  float state[2 * HELD];
  UNROLL for (uint i = 0; i < 2 * HELD; ++i) state[i] = 0.0f;
  bool wild = false;  // the state is not finite
  if (item < 4) FLAG(item) = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#if RECUR_CARRIES
  uint from = span;  // the first span that is taken
  if (RECUR_HAS(RECUR_INITIAL) && present) {
    const global float* initial =
        initial_elements + ARGS(initial_state.offset) + sequence * ARGS(initial_state.sequence) + head * ARGS(initial_state.head);
    UNROLL for (uint i = 0; i < 2 * HELD; ++i)
      state[i] = initial[STATE_KEY(i % HELD) * ARGS(initial_state.row) + own_column + lane / 4 + i / HELD * 8];
    wild = not_finite(state);
    if (wild) FLAG(2) = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (FLAG(2) != 0) from = 0;
  ROLLED for (uint before = 0; before < from; ++before) {
    const uint made = before * units + unit;
    const global float* its_factors = scratch + RECUR_MMA_SPAN_FACTORS(made);
    if (its_factors[KEY_DIM] != 0.0f) {
      from = before;
      break;
    }
    UNROLL for (uint i = 0; i < HELD; i += 2) {
      const float2 a = *(const global float2*)(its_factors + STATE_KEY(i));
      UNROLL for (uint r = 0; r < 2; ++r) {
        float* h = state + r * HELD + i;
        h[0] = h[0] * a.s0 + scratch[RECUR_MMA_SPAN_STATE(made, r * HELD + i) + item];
        h[1] = h[1] * a.s1 + scratch[RECUR_MMA_SPAN_STATE(made, r * HELD + i + 1) + item];
      }
    }
  }
#else
  const uint from = span;
  bool says_all = true;
  for (uint k = item; k < KEY_DIM; k += WG_X) totals[k] = 1.0f;
#endif

  const uint begin = min(from * each, length);
  uint stage = 0, parity = 0;
  float shared = 0.0f;
  if (begin < stop) {
    copy_block(tiles_of_memory, &on, args, place, begin, tokens_of(stop - begin), item);
    if (item < TOKENS) shared = shared_decay(&on, args, place, of_head, begin + item, stop);
  }
  ROLLED for (uint first = begin; first < stop; first += TOKENS) {
    const uint count = tokens_of(stop - first), next = first + TOKENS;
    const uint tile = tiles_of_memory + stage * RECUR_MMA_STAGE_BYTES(RECUR_OUTPUTS);
    local float* log_decays = numbers + parity * TOKENS;
    for (uint t = item; t < TOKENS; t += WG_X) {
      if (TOKENS > WG_X && t >= WG_X) shared = shared_decay(&on, args, place, of_head, first + t, stop);
      log_decays[t] = shared;
      factor[t] = factor_of(shared);
      if (!(shared <= 0.0f)) FLAG(parity) = 1;
    }
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (next < stop) {
      if (STAGES == 2) {
        copy_block(tiles_of_memory + (stage ^ 1) * RECUR_MMA_STAGE_BYTES(RECUR_OUTPUTS), &on, args, place, next,
                   tokens_of(stop - next), item);
      }
      if (item < TOKENS) shared = shared_decay(&on, args, place, of_head, next + item, stop);
    }
    bool odd = wild || tile_is_odd(tile, VALUE_PITCH, 2 * COLUMNS, item) ||
               tile_is_odd(tile + RECUR_MMA_KEYS, KEY_PITCH, 2 * KEY_DIM, item);
#if RECUR_OUTPUTS
    odd = odd || tile_is_odd(tile + RECUR_MMA_QUERIES, KEY_PITCH, 2 * KEY_DIM, item);
#endif
#if DTYPE == DTYPE_F16
    odd = odd || too_large(state);
#endif
#if KEY_DECAYS
    for (uint i = item; i < PAIRS * TOKENS; i += WG_X) {
      const float2 x = decay_pair(tile + RECUR_MMA_DECAYS, i / PAIRS, i % PAIRS);
      odd = odd || !(x.s0 <= 0.0f && x.s1 <= 0.0f);
    }
#endif
    if (odd) FLAG(parity) = 1;
    if (item == 0) FLAG(parity ^ 1) = 0;
#if RECUR_OUTPUTS
    float score[4 * WEIGHT_UNITS];
    take_plain_scores(score, tile, warp, lane);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (FLAG(parity) != 0) {
      ROLLED for (uint t = 0; t < count; ++t) {
#if RECUR_KEEPS
        if (t % CHUNK == 0 && first >= own && present) keep_state(KEPT_AT(t), state, own_column, lane);
#endif
#if !RECUR_OUTPUTS
        take_step(state, tile, t, log_decays[t], args, warp, lane);
#else
        const float2 sum = take_step(state, tile, t, log_decays[t], args, warp, lane);
        if (first >= own && present && lane % 4 < 2) {
          const float x = (lane % 4 == 0 ? sum.s0 : sum.s1) * ARGS(scale);
          store_scalar(x, OUTPUT_AT(token_of(args, place, first + t)), lane / 4 + lane % 4 * 8);
        }
#endif
      }
      wild = not_finite(state);
#if !RECUR_CARRIES
      says_all = false;
#endif
    } else {
#if KEY_DECAYS
      decay_tiles(tile, levels, factors, log_decays, args, item);
#else
      multiply_factors(factor, since, until, args, item);
#endif
#if RECUR_OUTPUTS
#if KEY_DECAYS
      barrier(CLK_LOCAL_MEM_FENCE);
#endif
      take_weights(tile, levels, weights, factor, score, warp, lane);
#endif
      barrier(CLK_LOCAL_MEM_FENCE);
      ROLLED for (uint chunk = 0; chunk < MMA_CEIL_DIV(count, CHUNK); ++chunk) {
        const uint row = chunk * CHUNK;
#if RECUR_KEEPS
        if (first >= own && present) keep_state(KEPT_AT(row), state, own_column, lane);
#endif
#if RECUR_OUTPUTS
        float out[8];
        take_outputs(out, state, tile + RECUR_MMA_QUERIES, tile, weights, row, since, warp, lane);
        UNROLL for (uint r = 0; r < 2; ++r) {
          const uint t = row + lane / 4 + r * 8;
          if (t >= count || first < own || !present) continue;
          global scalar* to = OUTPUT_AT(token_of(args, place, first + t)) + lane % 4 * 2;
          *(global uint*)to = pack_scalars(out[4 * r] * ARGS(scale), out[4 * r + 1] * ARGS(scale));
          *(global uint*)(to + 8) = pack_scalars(out[4 * r + 2] * ARGS(scale), out[4 * r + 3] * ARGS(scale));
        }
#endif
        add_chunk(state, tile + RECUR_MMA_KEYS, tile, row, chunk, factors, since, until, warp, lane);
      }
#if !RECUR_CARRIES
      for (uint k = item; k < KEY_DIM; k += WG_X) {
        ROLLED for (uint chunk = 0; chunk < MMA_CEIL_DIV(count, CHUNK); ++chunk)
          totals[k] *= KEY_DECAYS ? factors[chunk * KEY_DIM + k] : since[chunk * CHUNK + CHUNK - 1];
      }
#endif
    }
    if (STAGES == 2) {
      stage ^= 1;
    } else {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (next < stop)
        copy_block(tiles_of_memory, &on, args, place, next, tokens_of(stop - next), item);
    }
    parity ^= 1;
  }

#if RECUR_CARRIES
  if (RECUR_HAS(RECUR_FINAL) && span + 1 == spans && present) {
    global float* to =
        final_elements + ARGS(final_state.offset) + sequence * ARGS(final_state.sequence) + head * ARGS(final_state.head);
    UNROLL for (uint i = 0; i < 2 * HELD; ++i)
      to[STATE_KEY(i % HELD) * ARGS(final_state.row) + own_column + lane / 4 + i / HELD * 8] = state[i];
  }
#else
  UNROLL for (uint i = 0; i < 2 * HELD; ++i) scratch[RECUR_MMA_SPAN_STATE(group, i) + item] = state[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  global float* its_factors = scratch + RECUR_MMA_SPAN_FACTORS(group);
  for (uint k = item; k < KEY_DIM; k += WG_X) its_factors[k] = totals[k];
  if (item == 0) its_factors[KEY_DIM] = says_all ? 0.0f : 1.0f;
#endif
}
