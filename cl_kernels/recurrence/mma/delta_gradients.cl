// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries, keys, beta and decays of a chunk of 64 tokens of a delta rule, of the state h before it, the
//          gradient D of the state behind it, changes u and c, the gradient of what those are of beta. With G[t,s] the
//          products of factors behind s up to t, d_t = those from the chunk's beginning on, e_s = those to its end,
//            P = G (scale grad_output . u), N = G (c . u) for s < t, and row by row
//            grad_query = scale d h grad_output + P key
//            grad_key = P^T query + e D u - beta d h c - (beta N) key - (beta N)^T key
//            grad_beta = c . value - d key . (h c) - sum of N (key_t . key_s)
//            grad_g = what all pairs of a token from t on and one before it, or h, and D add to the products
// Who      A work-group of 16 warps owns a chunk in a head: each takes 16 tokens for a quarter of the sixteens of key dims,
//          and of a square of pairs a sixteenth.
// Memory   Operands, and what delta_forward and delta_back have left, once.
// Numerics Float sums of products of f16 or bf16. Rounded to those are h, D, u, c, P and N. Chunks that delta_chunks has
//          marked, or where something here is not finite or too large, are taken pair by pair in floats.
// Assumes  sm_80, WG_X = 512, dims are multiples of 16, at most 128; rows at multiples of 16 bytes; operands below 2^31
//          elements.
#define RECUR_OUTPUTS 0
#include "recurrence/mma/delta.clh"

#define BLOCK RECUR_DELTA_BLOCK                 // value dims at a time
#define ROW_BYTES (2 * BLOCK)                   // of tiles of rows of tokens
#define QUARTER_STEPS MMA_CEIL_DIV(STEPS, 4)    // sixteens of key dims of a warp
#define PAIR_PITCH RECUR_DELTA_PAIR_PITCH       // floats between rows of a table of pairs
#define OWN_FOURS (DELTA_CHUNK * BLOCK / 4 / WG_X)                 // of an item, of rows of a block
#define STATE_FOURS MMA_CEIL_DIV(BLOCK * KEY_DIM / 4, WG_X)       // and of its states
#define PARTS 8                                 // items that share a token
#define ROW_AT(rows, t) row_of(args->rows, place, token_of(args, place, first + (t)))

typedef struct {
  global scalar *query, *key;
  global void *beta, *gate;
} Gradients;

// What passes before have left of the chunk.
typedef struct {
  const global float *state, *dstate, *changes, *dchanges;
} Kept;

// In local memory: tables of pairs; eight numbers of each token for take_decay_gradients(); shares of gradients of beta;
// factors of tokens since the chunk began and to its end, beta; factors of tokens; sums of warps.
typedef struct {
  local float *tables, *ends, *of_beta;
  const local float *since, *until, *beta;
  local float2* decays;
  local float* wholes;
} Numbers;
INLINE float sum_of_wholes(const local float* wholes) {
  float sum = 0.0f;
  UNROLL for (uint i = 0; i < WG_X / 32; ++i) sum += wholes[i];
  return sum;
}

// What items of one token have of a sum, for all eight.
INLINE float sum_of_parts(float x) {
  float other;
  BUTTERFLY(x, other, 4);
  return quad_sum(x + other);
}

INLINE uint tile_place(uint row, uint chunk, uint pitch) { return row * pitch + (chunk % 8 ^ row % 8) * 16 + chunk / 8 * 128; }

// Four elements to a tile.
INLINE void store_words(uint tile, uint row, uint column, uint pitch, uint low, uint high) {
  const uint at = tile + tile_place(row, column / 8, pitch) + column % 8 * 2;
  store_local2(at, (float2)(as_float(low), as_float(high)));
}
// Floats, rounded; whether one is too large for that.
INLINE bool store_rounded(uint tile, uint row, uint column, uint pitch, float4 x) {
  store_words(tile, row, column, pitch, pack_scalars(x.s0, x.s1), pack_scalars(x.s2, x.s3));
  return !(fabs(x.s0) <= LARGEST_SCALAR && fabs(x.s1) <= LARGEST_SCALAR && fabs(x.s2) <= LARGEST_SCALAR &&
           fabs(x.s3) <= LARGEST_SCALAR);
}

// Products of the warp's 16 rows of tile `a` with the rows of sixteen `n` of tile `b`, of `steps` sixteens of columns.
INLINE void add_scores(float* x, uint a, uint b, uint pitch, uint steps, uint sixteen, uint n, uint lane) {
  const uint row = a + sixteen * 16 * pitch + mma_place_of_a(lane, pitch);
  const uint column = b + n * 16 * pitch + mma_place_of_b(lane, pitch);
  UNROLL for (uint k = 0; k < steps; ++k) {
    uint its[4], other[4];
    mma_load_blocks(its, MMA_CHUNK(row, 2 * k));
    mma_load_blocks(other, MMA_CHUNK(column, 2 * k));
    mma_multiply_add(x, x + 4, its, other[0], other[1]);
    mma_multiply_add(x + 2, x + 6, its, other[2], other[3]);
  }
}
// Row and column in a square of number i of what a warp has of it.
#define PAIR_ROW(i) (sixteen * 16 + lane / 4 + (i) / 4 * 8)
#define PAIR_COLUMN(i) (quarter * 16 + lane % 4 * 2 + (i) % 2 + (i) / 2 % 2 * 8)

// A block of 16 tokens by 16 terms times 16 rows of key dims: sixteens of those, `quarter` and each fourth one behind it.
INLINE void add_key_dims(float* x, const uint* left, uint rows, uint quarter, uint lane) {
  UNROLL for (uint n = 0; n < QUARTER_STEPS; ++n) {
    const uint step = quarter + 4 * n;
    if (step >= STEPS) continue;
    uint right[4];
    const uint at = rows + mma_place_of_a(lane, KEY_PITCH);
    mma_load_blocks_transposed(right, (at ^ 2 * step % 8 * 16) + 2 * step / 8 * 128);
    mma_multiply_add(x + 8 * n, x + 8 * n + 4, left, right[0], right[1]);
    mma_multiply_add(x + 8 * n + 2, x + 8 * n + 6, left, right[2], right[3]);
  }
}

// Of the warp's tokens, rows of tile `a` of value dims times a state's for them: sixteens of key dims `quarter` and each
// fourth one behind it.
INLINE void add_products(float* x, uint a, uint state, uint sixteen, uint quarter, uint lane) {
  const uint row = a + sixteen * 16 * ROW_BYTES + mma_place_of_a(lane, ROW_BYTES);
  UNROLL for (uint v = 0; v < BLOCK / 16; ++v) {
    uint its[4];
    mma_load_blocks(its, MMA_CHUNK(row, 2 * v));
    add_key_dims(x, its, state + v * 16 * KEY_PITCH, quarter, lane);
  }
}

// A square of pairs, or the transposed one, times rows of key dims, for the warp's tokens and key dims.
INLINE void add_weighed_rows(float* x, uint square, uint rows, bool transposed, uint sixteen, uint quarter, uint lane) {
  UNROLL for (uint k = 0; k < SIXTEENS; ++k) {
    if (transposed ? k < sixteen : k > sixteen) continue;
    uint weight[4];
    if (transposed) {
      mma_load_blocks_transposed(weight, (square + k * 16 * 128 + mma_place_of_b(lane, 128)) ^ sixteen * 32);
    } else {
      mma_load_blocks(weight, MMA_CHUNK(square + sixteen * 16 * 128 + mma_place_of_a(lane, 128), 2 * k));
    }
    add_key_dims(x, weight, rows + k * 16 * KEY_PITCH, quarter, lane);
  }
}

// Of the warp's two rows of tokens the sums over its key dims of x times an operand, to `sums`.
INLINE void add_dots(local float* sums, const float* x, uint tile, uint sixteen, uint quarter, uint lane) {
  UNROLL for (uint r = 0; r < 2; ++r) {
    const uint t = sixteen * 16 + lane / 4 + r * 8;
    float sum = 0.0f;
    UNROLL for (uint n = 0; n < QUARTER_STEPS; ++n) {
      const uint step = quarter + 4 * n;
      if (step >= STEPS) continue;
      UNROLL for (uint i = 0; i < 2; ++i) {
        const float2 y = unpack_pair(load_local(tile + t * KEY_PITCH + place_of_pair(t, step * 8 + i * 4 + lane % 4)));
        sum = fma(x[8 * n + 4 * r + 2 * i], y.s0, sum);
        sum = fma(x[8 * n + 4 * r + 2 * i + 1], y.s1, sum);
      }
    }
    sum = quad_sum(sum);
    if (lane % 4 == 0) sums[quarter * DELTA_CHUNK + t] = sum;
  }
}

INLINE void write_keys(global scalar* elements, const float* x, const struct RecurArgs* args, struct RecurRows rows,
                       Place place, uint first, uint count, uint sixteen, uint quarter, uint lane) {
  UNROLL for (uint r = 0; r < 2; ++r) {
    const uint t = sixteen * 16 + lane / 4 + r * 8;
    if (t >= count) continue;
    global scalar* to = elements + row_of(rows, place, token_of(args, place, first + t));
    UNROLL for (uint n = 0; n < QUARTER_STEPS; ++n) {
      const uint step = quarter + 4 * n;
      if (step >= STEPS) continue;
      UNROLL for (uint i = 0; i < 2; ++i)
        *(global uint*)(to + step * 16 + i * 8 + lane % 4 * 2) =
            pack_scalars(x[8 * n + 4 * r + 2 * i], x[8 * n + 4 * r + 2 * i + 1]);
    }
  }
}

// In f32 or in the storage type.
INLINE void store_number(const struct RecurArgs* args, global void* to, struct RecurRows rows, Place place, uint token,
                         uint type, float x) {
  const uint at = row_of(rows, place, token);
  if ((args->types >> type & 3u) == DTYPE_F32) {
    ((global float*)to)[at] = x;
  } else {
    store_scalar(x, (global scalar*)to, at);
  }
}

// Products of the factors behind token s up to t, in row t and column s of a table; 0 where t is before s.
INLINE void take_factors(local float* table, const local float2* decays, uint item) {
  const uint s = item / PARTS, part = item % PARTS;
  float products[8], before = 1.0f;
  UNROLL for (uint i = 0; i < 8; ++i) {
    const uint t = part * 8 + i;
    const float2 decay = decays[t];
    products[i] = (i > 0 ? products[i - 1] : 1.0f) * (t > s ? decay.s0 * decay.s1 : 1.0f);
  }
  UNROLL for (uint p = 0; p < PARTS; ++p) {
    const float other = warp_take(products[7], item % 32 / PARTS * PARTS + p);
    before *= p < part ? other : 1.0f;
  }
  UNROLL for (uint i = 0; i < 8; ++i) {
    const uint t = part * 8 + i;
    table[t * PAIR_PITCH + s] = t >= s ? before * products[i] : 0.0f;
  }
}

// The gradients of decays, of sums over pairs: what is in row u behind column t, whatever token behind it. `ends` has for
// each token what it adds to products with h, then to those with D, four parts of each; `whole` is of both.
INLINE void take_decay_gradients(local float* table, const local float* ends, float whole, const Gradients* to,
                                 const struct RecurArgs* args, Place place, uint first, uint count, uint item) {
  const uint t = item / PARTS, part = item % PARTS;
  // Rows, up to each column and without it.
  float before = 0.0f, sum = 0.0f;
  local float* row = table + t * PAIR_PITCH + part * 8;
  UNROLL for (uint i = 0; i < 8; ++i) sum += part * 8 + i < t ? row[i] : 0.0f;
  UNROLL for (uint p = 0; p < PARTS; ++p) {
    const float other = warp_take(sum, item % 32 / PARTS * PARTS + p);
    before += p < part ? other : 0.0f;
  }
  UNROLL for (uint i = 0; i < 8; ++i) {
    const float x = part * 8 + i < t ? row[i] : 0.0f;
    row[i] = before;
    before += x;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float gradient = part == 0 ? whole : 0.0f;
  UNROLL for (uint i = 0; i < 8; ++i) {
    const uint u = part * 8 + i;
    if (u >= t) {
      gradient += table[u * PAIR_PITCH + t];
      UNROLL for (uint p = 0; p < 4; ++p) gradient += ends[p * DELTA_CHUNK + u];
    } else {
      UNROLL for (uint p = 0; p < 4; ++p) gradient += ends[(4 + p) * DELTA_CHUNK + u];
    }
  }
  gradient = sum_of_parts(gradient);
  if (part == 0 && t < count)
    store_number(args, to->gate, args->dg, place, token_of(args, place, first + t), RECUR_TYPE_G, gradient);
}

#include "recurrence/mma/delta_pairs.clh"

KERNEL void recurrence_delta_gradients(
    const global scalar* restrict query_elements, const global scalar* restrict key_elements,
    const global scalar* restrict value_elements, const global void* restrict g_elements,
    const global scalar* restrict doutput_elements, global scalar* restrict dquery_elements,
    global scalar* restrict dkey_elements, global void* restrict dbeta_elements, global void* restrict dg_elements,
    global float* restrict scratch, const struct RecurArgs arguments) {
  const struct RecurArgs* args = &arguments;
  local uchar memory[RECUR_DELTA_GRADIENT_BYTES] __attribute__((aligned(128)));
  const uint keys = LOCAL_ADDRESS(memory), queries = keys + RECUR_MMA_KEY_BYTES;
  const uint given = keys + RECUR_DELTA_OPERAND_BYTES;                   // rows, and behind them states
  const uint weights = given, spent = given + RECUR_DELTA_BLOCK_ROWS;  // squares, where rows were
  local float* table = (local float*)(memory + RECUR_DELTA_TABLE);
  local float* numbers = (local float*)(memory + RECUR_DELTA_GRADIENT_NUMBERS);
  const Numbers at = {.tables = (local float*)(memory + RECUR_DELTA_OPERAND_BYTES),
                      .since = numbers,
                      .until = numbers + DELTA_CHUNK,
                      .beta = numbers + 2 * DELTA_CHUNK,
                      .decays = (local float2*)(numbers + 4 * DELTA_CHUNK),
                      .ends = numbers + 6 * DELTA_CHUNK,
                      .of_beta = numbers + 14 * DELTA_CHUNK,
                      .wholes = numbers + 23 * DELTA_CHUNK};
  const local float *since = at.since, *until = at.until, *beta = at.beta;
  local float *ends = at.ends, *of_beta = at.of_beta;
  volatile local int* flags = (volatile local int*)(at.wholes + WG_X / 32);

  const uint item = (uint)get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint sixteen = warp % 4, quarter = warp / 4, heads = ARGS(heads), sequences = ARGS(sequences);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint slot = group / heads;
  const Gradients to = {.query = dquery_elements, .key = dkey_elements, .beta = dbeta_elements, .gate = dg_elements};
  const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
  Place place = {.batch = 0, .head = group % heads, .begin = 0, .end = ARGS(tokens), .column = 0, .steps = 0};
  const bool wants_queries = RECUR_HAS(RECUR_GRAD_QUERY), wants_keys = RECUR_HAS(RECUR_GRAD_KEY);
  const bool wants_beta = RECUR_HAS(RECUR_GRAD_BETA), wants_decays = RECUR_HAS(RECUR_GRAD_G);
  if (slot >= ARGS(segment)) {  // of rows of no sequence, and groups beyond all
    if (slot > ARGS(segment) || !RECUR_HAS(RECUR_PACKED)) return;
    const uint before = (uint)boundaries[0], behind = (uint)boundaries[sequences];
    for (uint i = item / KEY_DIM; i < before + (ARGS(tokens) - behind); i += WG_X / KEY_DIM) {
      const uint token = i < before ? i : behind + i - before, k = item % KEY_DIM;
      if (item >= WG_X / KEY_DIM * KEY_DIM) break;
      if (wants_queries) dquery_elements[row_of(args->dquery, place, token) + k] = 0;
      if (wants_keys) dkey_elements[row_of(args->dkey, place, token) + k] = 0;
      if (wants_beta && k == 0) store_number(args, to.beta, args->dbeta, place, token, RECUR_TYPE_BETA, 0.0f);
      if (wants_decays && k == 0) store_number(args, to.gate, args->dg, place, token, RECUR_TYPE_G, 0.0f);
    }
    return;
  }
  if (sequences == 0) return;
  const uint sequence = sequence_of_chunk(args, boundaries, slot, DELTA_CHUNK);
  place = place_of_sequence(args, boundaries, sequence, place.head);
  const uint first =
      (slot - RECUR_DELTA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence)) * DELTA_CHUNK;
  const uint length = place.end - place.begin;
  if (first >= length) return;
  const uint count = tokens_of(length - first), value_dim = ARGS(value_dim);

  const Operands on = {.gate = g_elements};
  const global float* of_chunk = (const global float*)(chunk_scratch(scratch, args, slot, place.head) + RECUR_DELTA_NUMBERS);
  const Kept kept = {.state = kept_state(scratch, args, ARGS(states), slot, place.head),
                     .dstate = kept_state(scratch, args, ARGS(dstates), slot, place.head),
                     .changes = kept_rows(scratch, args, ARGS(changes), slot, place.head),
                     .dchanges = kept_rows(scratch, args, ARGS(dchanges), slot, place.head)};
  copy_keys(keys, key_elements, args, place, args->key, 0, KEY_DIM, first, count, item);
  copy_keys(queries, query_elements, args, place, args->query, 0, KEY_DIM, first, count, item);
  if (item < 3 * DELTA_CHUNK) numbers[item] = of_chunk[item];
  if (item < DELTA_CHUNK) at.decays[item] = decay_shares(shared_decay(&on, args, place, 0.0f, first + item, length));
  if (item == 0) flags[0] = ((const global int*)of_chunk)[DELTA_MARK];

  // Products with states, of a quarter of the key dims; of a square, of gradients of outputs and of c with u.
  float of_queries[8 * QUARTER_STEPS], of_keys[8 * QUARTER_STEPS], of_changes[8 * QUARTER_STEPS], p[8], n[8];
  UNROLL for (uint i = 0; i < 8 * QUARTER_STEPS; ++i) of_queries[i] = of_keys[i] = of_changes[i] = 0.0f;
  UNROLL for (uint i = 0; i < 8; ++i) p[i] = n[i] = 0.0f;
  float whole = 0.0f, of_value[2] = {0.0f, 0.0f};
  bool odd = false;
  ROLLED for (uint column = 0; column < value_dim; column += BLOCK) {
    const uint columns = min(value_dim - column, BLOCK);
    // Not known to be the same each time, lest addresses of all steps are kept in registers; nor is `own`, the item.
    const uint rows = (uint)uniform((int)given), own = item + (rows - given), own_changes = rows + RECUR_DELTA_BLOCK_ROWS,
               own_dchanges = own_changes + RECUR_DELTA_BLOCK_ROWS, state = own_dchanges + RECUR_DELTA_BLOCK_ROWS,
               dstate = state + RECUR_DELTA_BLOCK_STATE;
    if (column > 0) barrier(CLK_LOCAL_MEM_FENCE);
    // Loads come before stores, which the compiler keeps in order.
#define OWN_ROW(i) ((own + (i)*WG_X) / (BLOCK / 4))
#define OWN_FOUR (own % (BLOCK / 4) * 4)
    float4 u[OWN_FOURS], c[OWN_FOURS], value[OWN_FOURS];
    uint2 words[OWN_FOURS];
    UNROLL for (uint i = 0; i < OWN_FOURS; ++i) {
      u[i] = c[i] = value[i] = (float4)(0.0f);
      words[i] = (uint2)(0);
      if (OWN_ROW(i) >= count || OWN_FOUR >= columns) continue;
      u[i] = *(const global float4*)(kept.changes + OWN_ROW(i) * value_dim + column + OWN_FOUR);
      c[i] = *(const global float4*)(kept.dchanges + OWN_ROW(i) * value_dim + column + OWN_FOUR);
      words[i] = *(const global uint2*)(doutput_elements + ROW_AT(result, OWN_ROW(i)) + column + OWN_FOUR);
      value[i] = load_scalar4(value_elements, ROW_AT(value, OWN_ROW(i)) + column + OWN_FOUR);
    }
    UNROLL for (uint i = 0; i < OWN_FOURS; ++i) {
      of_value[i] += dot(c[i], value[i]);
      odd = store_rounded(own_changes, OWN_ROW(i), OWN_FOUR, ROW_BYTES, u[i]) || odd;
      odd = store_rounded(own_dchanges, OWN_ROW(i), OWN_FOUR, ROW_BYTES, c[i]) || odd;
      store_words(rows, OWN_ROW(i), OWN_FOUR, ROW_BYTES, words[i].s0, words[i].s1);
    }
#define OWN_VALUE(i) ((own + (i)*WG_X) / (KEY_DIM / 4))
#define OWN_KEYS(i) ((own + (i)*WG_X) % (KEY_DIM / 4) * 4)
    // Fewer at once: sums take half of the registers.
    UNROLL for (uint first_four = 0; first_four < STATE_FOURS; first_four += 2) {
      float4 h[2], e[2];
      UNROLL for (uint n = 0; n < 2; ++n) {
        const uint i = first_four + n;
        h[n] = e[n] = (float4)(0.0f);
        if (OWN_VALUE(i) >= columns) continue;
        h[n] = *(const global float4*)(kept.state + (column + OWN_VALUE(i)) * KEY_DIM + OWN_KEYS(i));
        e[n] = *(const global float4*)(kept.dstate + (column + OWN_VALUE(i)) * KEY_DIM + OWN_KEYS(i));
      }
      UNROLL for (uint n = 0; n < 2; ++n) {
        const uint i = first_four + n;
        if (OWN_VALUE(i) >= BLOCK) break;
        whole += dot(h[n], e[n]);
        odd = store_rounded(state, OWN_VALUE(i), OWN_KEYS(i), KEY_PITCH, h[n]) || odd;
        odd = store_rounded(dstate, OWN_VALUE(i), OWN_KEYS(i), KEY_PITCH, e[n]) || odd;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_products(of_queries, rows, state, sixteen, quarter, lane);
    add_products(of_keys, own_dchanges, state, sixteen, quarter, lane);
    add_products(of_changes, own_changes, dstate, sixteen, quarter, lane);
    if (quarter <= sixteen) {
      add_scores(p, rows, own_changes, ROW_BYTES, BLOCK / 16, sixteen, quarter, lane);
      add_scores(n, own_dchanges, own_changes, ROW_BYTES, BLOCK / 16, sixteen, quarter, lane);
    }
  }
  mma_copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);
  if (odd) flags[0] = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (flags[0] == 0) {
    // Products of factors of pairs.
    take_factors(table, at.decays, item);
    float spent_sum[2] = {0.0f, 0.0f};
    UNROLL for (uint i = 0; i < 2; ++i) {
      float sum = of_value[i], other;
      BUTTERFLY(sum, other, 8);
      sum = sum_of_parts(sum + other);
      if (item % 16 == 0) of_beta[(item + i * WG_X) / 16] = sum;
    }
    whole = warp_sum(whole);
    if (lane == 0) at.wholes[warp] = whole;
    float of_key_pairs[8], of_query_pairs[8];
    UNROLL for (uint i = 0; i < 8; ++i) of_key_pairs[i] = of_query_pairs[i] = 0.0f;
    if (quarter <= sixteen) {
      add_scores(of_key_pairs, keys, keys, KEY_PITCH, STEPS, sixteen, quarter, lane);
      add_scores(of_query_pairs, queries, keys, KEY_PITCH, STEPS, sixteen, quarter, lane);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (quarter <= sixteen) {
      UNROLL for (uint i = 0; i < 8; ++i) {
        const uint t = PAIR_ROW(i), s = PAIR_COLUMN(i);
        const float product = table[t * PAIR_PITCH + s];
        p[i] *= product * ARGS(scale);
        n[i] *= t > s ? product : 0.0f;
        spent_sum[i / 4] = fma(n[i], of_key_pairs[i], spent_sum[i / 4]);
        n[i] *= -beta[t];
        table[t * PAIR_PITCH + s] = t > s ? fma(p[i], of_query_pairs[i], n[i] * of_key_pairs[i]) : 0.0f;
      }
      UNROLL for (uint i = 0; i < 8; i += 2) {
        const uint t = PAIR_ROW(i), pair = PAIR_COLUMN(i) / 2, word = t * 128 + place_of_pair(t, pair);
        store_local(weights + word, pack_scalars(p[i], p[i + 1]));
        store_local(spent + word, pack_scalars(n[i], n[i + 1]));
        if (!(fabs(p[i]) <= LARGEST_SCALAR && fabs(p[i + 1]) <= LARGEST_SCALAR && fabs(n[i]) <= LARGEST_SCALAR &&
              fabs(n[i + 1]) <= LARGEST_SCALAR))
          flags[0] = 1;
      }
    }
    UNROLL for (uint r = 0; r < 2; ++r) {
      const float sum = quad_sum(spent_sum[r]);
      if (lane % 4 == 0) of_beta[(1 + quarter) * DELTA_CHUNK + sixteen * 16 + lane / 4 + r * 8] = sum;
    }
    UNROLL for (uint i = 0; i < 8 * QUARTER_STEPS; ++i) {
      const uint t = sixteen * 16 + lane / 4 + i / 4 % 2 * 8;
      of_queries[i] *= since[t] * ARGS(scale);
      of_keys[i] *= -since[t];
      of_changes[i] *= until[t];
    }
    add_dots(ends, of_queries, queries, sixteen, quarter, lane);
    add_dots(ends + 4 * DELTA_CHUNK, of_changes, keys, sixteen, quarter, lane);
    add_dots(of_beta + 5 * DELTA_CHUNK, of_keys, keys, sixteen, quarter, lane);
    UNROLL for (uint i = 0; i < 8 * QUARTER_STEPS; ++i)
      of_changes[i] = fma(beta[sixteen * 16 + lane / 4 + i / 4 % 2 * 8], of_keys[i], of_changes[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (flags[0] == 0) {
    if (item < DELTA_CHUNK) {
      float gradient = of_beta[item];
      UNROLL for (uint part = 0; part < 4; ++part) {
        gradient += of_beta[(5 + part) * DELTA_CHUNK + item] - of_beta[(1 + part) * DELTA_CHUNK + item];
        ends[part * DELTA_CHUNK + item] += beta[item] * of_beta[(5 + part) * DELTA_CHUNK + item];
      }
      if (wants_beta && item < count)
        store_number(args, to.beta, args->dbeta, place, token_of(args, place, first + item), RECUR_TYPE_BETA, gradient);
    }
    if (wants_queries) {
      add_weighed_rows(of_queries, weights, keys, false, sixteen, quarter, lane);
      write_keys(dquery_elements, of_queries, args, args->dquery, place, first, count, sixteen, quarter, lane);
    }
    if (wants_keys) {
      add_weighed_rows(of_changes, weights, queries, true, sixteen, quarter, lane);
      add_weighed_rows(of_changes, spent, keys, true, sixteen, quarter, lane);
      add_weighed_rows(of_changes, spent, keys, false, sixteen, quarter, lane);
      write_keys(dkey_elements, of_changes, args, args->dkey, place, first, count, sixteen, quarter, lane);
    }
    if (!wants_decays) return;
    barrier(CLK_LOCAL_MEM_FENCE);
    take_decay_gradients(table, ends, sum_of_wholes(at.wholes) * since[DELTA_CHUNK - 1], &to, args, place, first, count, item);
    return;
  }
  take_pairs(&at, &to, &kept, query_elements, key_elements, value_elements, doutput_elements, args, place, first, count,
             item);
}
