// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries, keys, values and decays of a chunk of 16 tokens, of the state before it and of the
//          gradient of the state behind it.
// Who      A work-group owns a chunk in a head. Each warp takes products of states with sixteen key dims; then four warps
//          have a key dim for each item, and the others weights and the gradients of values.
// Memory   Operands and the two states of a chunk once, by asynchronous copies.
// Numerics Float sums of products of bf16. Rounded to those are the states and, for gradients of values, queries and
//          keys times factors, and weights. Chunks with factors above 1, or with what is not finite, are taken step by
//          step in floats, but of rounded states.
// Assumes  sm_80, recurrence/mma/forward has left the states; dims are multiples of 16, at most 128; rows at multiples of
//          16 bytes; operands below 2^31 elements.
#define RECUR_OUTPUTS 1
#define TOKENS 16
#define STAGES 1
#include "recurrence/mma/step_gradients.clh"

#define HALF_ITEMS (WG_X / 2)
#define HALF_SYNC(id) GROUP_SYNC(id, HALF_ITEMS)
#define ROW_AT(rows, t) row_of(args->rows, place, token_of(args, place, first + (t)))
#define VALUE_STEPS (VALUE_DIM / 16)  // sixteens of value dims
#define FLAG(n) flags[n]
#define SCORE_PITCH (2 * CHUNK)  // zeros behind a row of scores

typedef struct {
  global scalar *query, *key;
  global void *gate, *key_decay;  // of a token; of its key dims
  global float* sums;
} Gradients;

INLINE void store_decay_gradient(const Gradients* to, float x, const struct RecurArgs* args, Place place, uint token,
                                 uint k) {
#if KEY_DECAYS
  if (RECUR_HAS(RECUR_GRAD_GK))
    store_typed_steps((float4)(x), to->key_decay, row_of(args->dgk, place, token) + k, 0, 1,
                      args->types >> RECUR_TYPE_GK & 3u);
  if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_KEY_GATE))
    store_typed_steps((float4)(x), to->gate, row_of(args->dg, place, token) + k, 0, 1, args->types >> RECUR_TYPE_G & 3u);
#endif
}
// The gradient of what key dims of a token share of its decay.
INLINE void store_sum(const Gradients* to, float x, const struct RecurArgs* args, Place place, uint token) {
  if (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_GATE))
    store_typed_steps((float4)(x), to->gate, row_of(args->dg, place, token), 0, 1, args->types >> RECUR_TYPE_G & 3u);
  if (RECUR_HAS(RECUR_GRAD_GAMMA)) to->sums[(place.batch * ARGS(tokens) + token) * ARGS(heads) + place.head] = x;
}

INLINE bool wants_sums(const struct RecurArgs* args) {
  return (RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_GATE)) || RECUR_HAS(RECUR_GRAD_GAMMA);
}
// Of a token in key dim k; `for_sum` is where the gradient of its decay waits for those of other key dims.
INLINE void store_key_gradients(const Gradients* to, float dquery, float dkey, float ddecay, local float* for_sum,
                                const struct RecurArgs* args, Place place, uint step, uint count, uint k) {
  *for_sum = ddecay;
  if (step >= count) return;
  const uint token = token_of(args, place, step);
  if (RECUR_HAS(RECUR_GRAD_QUERY)) store_scalar(dquery, to->query, row_of(args->dquery, place, token) + k);
  if (RECUR_HAS(RECUR_GRAD_KEY)) store_scalar(dkey, to->key, row_of(args->dkey, place, token) + k);
  store_decay_gradient(to, ddecay, args, place, token, k);
}
// Of `table`, a row of key dims for each token.
INLINE void store_sums(const Gradients* to, const local float* table, const struct RecurArgs* args, Place place, uint first,
                       uint count, uint item) {
  const uint t = item / 8;
  float sum = 0.0f, other;
  ROLLED for (uint i = item % 8; i < KEY_DIM; i += 8) sum += table[t * KEY_DIM + i];
  BUTTERFLY(sum, other, 4);
  sum = quad_sum(sum + other);
  if (item % 8 == 0 && first + t < count) store_sum(to, sum, args, place, token_of(args, place, first + t));
}

// Of key dim k of a chunk, with pairs of its tokens. `x` has the products of the state and gradients of outputs, `y` those
// of its gradient and values, a row for each token, of which this item's are taken and used again. Tokens are taken by
// fours, which come first in arrays; behind them are zeros.
INLINE void take_key_gradients(const Gradients* to, const float* factors_of_tokens, const float* queries_of_tokens,
                               const float* key, local float* x, local float* y, const local float* scores, float leaves,
                               const struct RecurArgs* args, Place place, uint first, uint count, uint k) {
  float a[CHUNK + 4], query[CHUNK + 4], dquery[CHUNK + 4], ddecay[CHUNK + 4];
  UNROLL for (uint t = 0; t < CHUNK + 4; ++t) {
    a[t] = t < CHUNK ? factors_of_tokens[t] : 0.0f;
    query[t] = t < CHUNK ? queries_of_tokens[t] : 0.0f;
    dquery[t] = ddecay[t] = 0.0f;
  }
  float factor = 1.0f;
  UNROLL for (uint t = 0; t < CHUNK; ++t) {
    factor *= a[t];
    dquery[t] = factor * ARGS(scale) * x[t * KEY_DIM];
    x[t * KEY_DIM] = key[t];
  }
  float sum = factor * leaves;
  factor = 1.0f;
  UNROLL for (uint n = 1; n <= CHUNK; ++n) {
    const uint t = CHUNK - n;
    sum = fma(query[t], dquery[t], sum);
    ddecay[t] = sum;
    y[t * KEY_DIM] *= factor;
    factor *= a[t];
  }
  sum = 0.0f;
  UNROLL for (uint t = 0; t < CHUNK; ++t) {
    ddecay[t] += sum;
    sum = fma(key[t], y[t * KEY_DIM], sum);
  }
  ROLLED for (uint four = 0; four < CHUNK; four += 4) {
    UNROLL for (uint s = 0; s < 4; ++s) {
      float score[CHUNK], decayed[CHUNK];
      local float *own_x = x + (four + s) * KEY_DIM, *own_y = y + (four + s) * KEY_DIM;
      UNROLL for (uint u = 0; u < CHUNK; u += 4) {
        const float4 part = *(const local float4*)(scores + (four + s) * SCORE_PITCH + four + u);
        score[u] = part.s0, score[u + 1] = part.s1, score[u + 2] = part.s2, score[u + 3] = part.s3;
      }
      float row = *own_x;  // the key, decayed to a token
      UNROLL for (uint u = 0; u < CHUNK; ++u) {
        if (u < s) continue;
        if (u > s) row *= a[u];
        decayed[u] = row;
        dquery[u] = fma(row, score[u], dquery[u]);
      }
      row = 0.0f;  // queries from a token on, decayed to it
      UNROLL for (uint n = 1; n < CHUNK; ++n) {
        const uint u = CHUNK - n;
        if (u <= s) continue;
        row = fma(score[u], query[u], row);
        ddecay[u] = fma(decayed[u], row, ddecay[u]);
        row *= a[u];
      }
      store_key_gradients(to, dquery[s], *own_y + fma(score[s], query[s], row), ddecay[s], own_x, args, place,
                          first + four + s, count, k);
    }
    UNROLL for (uint u = 0; u < CHUNK; ++u)
      a[u] = a[u + 4], query[u] = query[u + 4], dquery[u] = dquery[u + 4], ddecay[u] = ddecay[u + 4];
  }
}

KERNEL void recurrence_mma_gradients(
    const global scalar* restrict query_elements, const global scalar* restrict key_elements,
    const global scalar* restrict value_elements, const global void* restrict g_elements,
    const global void* restrict gamma_elements, const global void* restrict gk_elements,
    const global scalar* restrict doutput_elements, global scalar* restrict dquery_elements,
    global scalar* restrict dkey_elements, global scalar* restrict dvalue_elements, global void* restrict dg_elements,
    global void* restrict dgk_elements, global float* restrict scratch, const struct RecurArgs arguments) {
  const struct RecurArgs* args = &arguments;
  local uchar memory[RECUR_MMA_GRADIENT_BYTES] __attribute__((aligned(128)));
  const uint tile = LOCAL_ADDRESS(memory);
  const uint levels = tile + RECUR_MMA_LEVEL_START(1u), weights = tile + RECUR_MMA_WEIGHTS(1u);
  local float* factors = (local float*)(memory + RECUR_MMA_FACTORS(1u));
  local float* log_decays = (local float*)(memory + RECUR_MMA_NUMBERS(1u));
  local float* factor = log_decays + 2 * TOKENS;
#if !KEY_DECAYS
  local float *since = factor + TOKENS, *until = since + TOKENS;
#endif
  volatile local int* flags = (volatile local int*)(memory + RECUR_MMA_FLAGS(1u));
  const uint doutput = tile + RECUR_MMA_DOUTPUT, state = tile + RECUR_MMA_STATE, dstate = tile + RECUR_MMA_DSTATE;
  local float* products = (local float*)(memory + RECUR_MMA_STATE);
  local float* scores = (local float*)(memory + RECUR_MMA_SCORES);
  local float* leaves = (local float*)(memory + RECUR_MMA_LEAVES);

  const uint item = (uint)get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint heads = ARGS(heads), sequences = ARGS(sequences);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint slot = group / heads;
  const Gradients to = {.query = dquery_elements,
                        .key = dkey_elements,
                        .gate = dg_elements,
                        .key_decay = dgk_elements,
                        .sums = scratch + 4 * (size_t)ARGS(sums)};
  const bool packed = RECUR_HAS(RECUR_PACKED);
  const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
  Place place = {.batch = 0, .head = group % heads, .begin = 0, .end = ARGS(tokens), .column = 0, .steps = 0};
  if (slot >= ARGS(segment)) {  // of rows of no sequence, and groups beyond all
    if (slot > ARGS(segment) || !packed) return;
    const uint before = (uint)boundaries[0], behind = (uint)boundaries[sequences];
    for (uint i = item / HALF_ITEMS; i < before + (ARGS(tokens) - behind); i += 2) {
      const uint token = i < before ? i : behind + i - before, d = item % HALF_ITEMS;
      if (RECUR_HAS(RECUR_GRAD_QUERY) && d < KEY_DIM) dquery_elements[row_of(args->dquery, place, token) + d] = 0;
      if (RECUR_HAS(RECUR_GRAD_KEY) && d < KEY_DIM) dkey_elements[row_of(args->dkey, place, token) + d] = 0;
      if (RECUR_HAS(RECUR_GRAD_VALUE) && d < VALUE_DIM) dvalue_elements[row_of(args->dvalue, place, token) + d] = 0;
      if (d < KEY_DIM) store_decay_gradient(&to, 0.0f, args, place, token, d);
      if (d == 0) store_sum(&to, 0.0f, args, place, token);
    }
    return;
  }
  if (sequences == 0) return;
  const uint sequence = sequence_of_chunk(args, boundaries, slot, CHUNK);
  place = place_of_sequence(args, boundaries, sequence, place.head);
  const uint first =
      (slot - RECUR_MMA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence)) * CHUNK;
  const uint length = place.end - place.begin;
  if (first >= length) return;
  const uint count = tokens_of(length - first);

  const Operands on = {.query = query_elements,
                       .key = key_elements,
                       .value = value_elements,
                       .gate = g_elements,
                       .key_decay = RECUR_HAS(RECUR_GK) ? gk_elements : g_elements};
  copy_block(tile, &on, args, place, first, count, item);
  copy_values(doutput, doutput_elements, args, place, args->result, 0, ARGS(value_dim), first, count, item);
  {
    const uint chunks = KEY_DIM / 8;
    const global uchar* kept = (const global uchar*)scratch + (size_t)group * (2 * KEY_DIM * VALUE_DIM);
    UNROLL for (uint n = 0; n < MMA_CEIL_DIV(VALUE_DIM * chunks, WG_X); ++n) {
      const uint i = item + n * WG_X, row = i / chunks, chunk = i % chunks;
      if (VALUE_DIM * chunks % WG_X != 0 && i >= VALUE_DIM * chunks) break;
      const uint at = row * KEY_PITCH + (chunk % 8 ^ row % 8) * 16 + chunk / 8 * 128;
      mma_copy_start(state + at, kept + 16 * (size_t)ARGS(kept) + 16 * i, 16);
      mma_copy_start(dstate + at, kept + 16 * (size_t)ARGS(inner) + 16 * i, 16);
    }
  }
  scores[item / CHUNK * SCORE_PITCH + CHUNK + item % CHUNK] = 0.0f;
  if (item == 0) FLAG(0) = 0;
  float of_head = (float)place.head * ARGS(slope);
  if (RECUR_HAS(RECUR_GAMMA)) {
    const uint at = ARGS(gamma_offset) + place.head * ARGS(gamma_stride);
    of_head += load_typed_steps(gamma_elements, at, 0, 1, args->types >> RECUR_TYPE_GAMMA & 3u).x;
  }
  float shared = 0.0f;
  if (item < TOKENS) {
    shared = shared_decay(&on, args, place, of_head, first + item, length);
    log_decays[item] = shared;
    factor[item] = factor_of(shared);
  }
  mma_copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);

  bool odd = !(shared <= 0.0f) || tile_is_odd(tile, VALUE_PITCH, 2 * VALUE_DIM, item) ||
             tile_is_odd(doutput, VALUE_PITCH, 2 * VALUE_DIM, item) ||
             tile_is_odd(tile + RECUR_MMA_KEYS, KEY_PITCH, 2 * KEY_DIM, item) ||
             tile_is_odd(tile + RECUR_MMA_QUERIES, KEY_PITCH, 2 * KEY_DIM, item);
  for (uint i = item; i < VALUE_DIM * (KEY_DIM / 8); i += WG_X) {
    const uint row = i / (KEY_DIM / 8), chunk = i % (KEY_DIM / 8);
    const uint at = row * KEY_PITCH + (chunk % 8 ^ row % 8) * 16 + chunk / 8 * 128;
    odd = odd || is_odd(load_local4(state + at)) || is_odd(load_local4(dstate + at));
  }
#if KEY_DECAYS
  for (uint i = item; i < PAIRS * TOKENS; i += WG_X) {
    const float2 x = decay_pair(tile + RECUR_MMA_DECAYS, i / PAIRS, i % PAIRS);
    odd = odd || !(x.s0 <= 0.0f && x.s1 <= 0.0f);
  }
#endif
  if (odd) FLAG(0) = 1;

  // Products with states, of sixteen key dims; scores.
  float x[8], y[8], leave[8], score[4 * WEIGHT_UNITS];
  const bool multiplies = warp < STEPS;
  if (multiplies) {
    UNROLL for (uint i = 0; i < 8; ++i) x[i] = y[i] = leave[i] = 0.0f;
    UNROLL for (uint v = 0; v < VALUE_STEPS; ++v) {
      uint a[4], h[4], e[4];
      const uint at = v * 16 * KEY_PITCH + mma_place_of_a(lane, KEY_PITCH);
      mma_load_blocks_transposed(h, MMA_CHUNK(state + at, 2 * warp));
      mma_load_blocks_transposed(e, MMA_CHUNK(dstate + at, 2 * warp));
      mma_load_blocks(a, MMA_CHUNK(doutput + mma_place_of_a(lane, VALUE_PITCH), 2 * v));
      mma_multiply_add(x, x + 4, a, h[0], h[1]);
      mma_multiply_add(x + 2, x + 6, a, h[2], h[3]);
      mma_load_blocks(a, MMA_CHUNK(tile + mma_place_of_a(lane, VALUE_PITCH), 2 * v));
      mma_multiply_add(y, y + 4, a, e[0], e[1]);
      mma_multiply_add(y + 2, y + 6, a, e[2], e[3]);
      a[0] = h[0], a[1] = h[2], a[2] = h[1], a[3] = h[3];
      mma_multiply_add(leave, leave + 4, a, e[0], e[1]);
      mma_multiply_add(leave + 2, leave + 6, a, e[2], e[3]);
    }
  }
  if (warp == WARPS - 1) {
    float product[8];
    UNROLL for (uint i = 0; i < 8; ++i) product[i] = 0.0f;
    UNROLL for (uint v = 0; v < VALUE_STEPS; ++v) {
      uint a[4], b[4];
      mma_load_blocks(a, MMA_CHUNK(doutput + mma_place_of_a(lane, VALUE_PITCH), 2 * v));
      mma_load_blocks(b, MMA_CHUNK(tile + mma_place_of_b(lane, VALUE_PITCH), 2 * v));
      mma_multiply_add(product, product + 4, a, b[0], b[1]);
      mma_multiply_add(product + 2, product + 6, a, b[2], b[3]);
    }
    UNROLL for (uint i = 0; i < 8; ++i)
      scores[(lane % 4 * 2 + i % 2 + i / 2 % 2 * 8) * SCORE_PITCH + lane / 4 + i / 4 * 8] = product[i] * ARGS(scale);
  }
  const bool has_key = item < HALF_ITEMS;
  if (!has_key) take_plain_scores(score, tile, warp - WARPS / 2, lane);
  barrier(CLK_LOCAL_MEM_FENCE);

  const uint k = item, v = item - HALF_ITEMS;
  if (FLAG(0) != 0) {
    if (has_key) {
      float dquery[CHUNK], dkey[CHUNK], ddecay[CHUNK];
      if (k < KEY_DIM)
        step_key_gradients(dquery, dkey, ddecay, tile, doutput, state, dstate, log_decays, ARGS(scale), k);
      HALF_SYNC(1);
      if (k < KEY_DIM) {
        UNROLL for (uint t = 0; t < CHUNK; ++t)
          store_key_gradients(&to, dquery[t], dkey[t], ddecay[t], products + t * KEY_DIM + k, args, place, first + t,
                              length, k);
      }
      if (wants_sums(args)) {
        HALF_SYNC(1);
        store_sums(&to, products, args, place, first, length, item);
      }
    } else if (v < VALUE_DIM) {
      float dvalue[CHUNK];
      step_value_gradients(dvalue, tile, doutput, dstate, log_decays, ARGS(scale), v);
      if (RECUR_HAS(RECUR_GRAD_VALUE)) {
        UNROLL for (uint t = 0; t < CHUNK; ++t)
          if (t < count) store_scalar(dvalue[t], dvalue_elements, ROW_AT(dvalue, t) + v);
      }
    }
    return;
  }
  float a[CHUNK], query[CHUNK], key[CHUNK];
  if (has_key && k < KEY_DIM) {
    UNROLL for (uint t = 0; t < CHUNK; ++t) {
#if KEY_DECAYS
      a[t] = factor_of(log_decay_of(tile, log_decays, t, k));
#else
      a[t] = factor[t];
#endif
      query[t] = tile_element(tile + RECUR_MMA_QUERIES, t, KEY_PITCH, k);
      key[t] = tile_element(tile + RECUR_MMA_KEYS, t, KEY_PITCH, k);
    }
  }
  if (multiplies) {
    local float* its = products + lane / 4 * KEY_DIM + warp * 16 + lane % 4 * 2;
    UNROLL for (uint i = 0; i < 8; ++i) {
      its[i / 4 * 8 * KEY_DIM + i / 2 % 2 * 8 + i % 2] = x[i];
      its[(CHUNK + i / 4 * 8) * KEY_DIM + i / 2 % 2 * 8 + i % 2] = y[i];
    }
    UNROLL for (uint i = 0; i < 2; ++i) {
      if (lane / 4 != lane % 4 * 2 + i) continue;
      leaves[warp * 16 + lane / 4] = leave[i];
      leaves[warp * 16 + 8 + lane / 4] = leave[6 + i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (has_key) {
    if (k < KEY_DIM)
      take_key_gradients(&to, a, query, key, products + k, products + CHUNK * KEY_DIM + k, scores, leaves[k], args, place,
                         first, length, k);
    if (wants_sums(args)) {
      HALF_SYNC(1);
      store_sums(&to, products, args, place, first, length, item);
    }
    return;
  }
#if KEY_DECAYS
  decay_tiles(tile, levels, factors, log_decays, args, v);
#else
  multiply_factors(factor, since, until, args, v);
#endif
  HALF_SYNC(2);
  take_weights(tile, levels, weights, factor, score, warp - WARPS / 2, lane);
  HALF_SYNC(2);
  if (!RECUR_HAS(RECUR_GRAD_VALUE)) return;
  ROLLED for (uint piece = warp - WARPS / 2; piece < VALUE_STEPS; piece += WARPS / 2) {
    float out[8], inner[8];
    UNROLL for (uint i = 0; i < 8; ++i) out[i] = inner[i] = 0.0f;
    UNROLL for (uint step = 0; step < STEPS; ++step) {
      uint its_keys[4], e[4];
      mma_load_blocks(its_keys, MMA_CHUNK(tile + RECUR_MMA_KEYS + mma_place_of_a(lane, KEY_PITCH), 2 * step));
      mma_load_blocks(e, MMA_CHUNK(dstate + piece * 16 * KEY_PITCH + mma_place_of_b(lane, KEY_PITCH), 2 * step));
      mma_multiply_add(out, out + 4, its_keys, e[0], e[1]);
      mma_multiply_add(out + 2, out + 6, its_keys, e[2], e[3]);
    }
    uint weight[4], of_output[4];
    mma_load_blocks_transposed(weight, weights + (lane % 8 + lane / 16 * 8) * 32 + lane / 8 % 2 * 16);
    const uint at = doutput + mma_place_of_a(lane, VALUE_PITCH);
    mma_load_blocks_transposed(of_output, (at ^ piece * 2 % 8 * 16) + piece * 2 / 8 * 128);
    mma_multiply_add(inner, inner + 4, weight, of_output[0], of_output[1]);
    mma_multiply_add(inner + 2, inner + 6, weight, of_output[2], of_output[3]);
    UNROLL for (uint r = 0; r < 2; ++r) {
      const uint t = lane / 4 + r * 8;
      if (t >= count) continue;
      UNROLL for (uint i = 4 * r; i < 4 * r + 4; ++i) {
#if !KEY_DECAYS
        out[i] *= until[t];
#endif
        out[i] = fma(inner[i], ARGS(scale), out[i]);
      }
      global scalar* out_row = dvalue_elements + ROW_AT(dvalue, t) + piece * 16 + lane % 4 * 2;
      *(global uint*)out_row = pack_scalars(out[4 * r], out[4 * r + 1]);
      *(global uint*)(out_row + 8) = pack_scalars(out[4 * r + 2], out[4 * r + 3]);
    }
  }
}
