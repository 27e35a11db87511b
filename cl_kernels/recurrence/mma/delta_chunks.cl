// SPDX-License-Identifier: Apache-2.0
// What     Of a chunk of 64 tokens of a delta rule what all columns share: the solution of its equations, the weights of its
//          outputs, and factors of its tokens.
// Who      A work-group of four warps owns a chunk in a head. A warp takes the scores of 16 tokens; then an item solves for a
//          column, or weighs one.
// Memory   Keys, queries, beta and decays once; to scratch three lower triangles of elements of 16 bits, and factors.
// Numerics Float sums of products of f16 or bf16; the solution in floats, by rows, kept as the sum of two bfloat16. Weights
//          are rounded to the storage type. A chunk with factors above 1, or where something is not finite or too large, is
//          marked.
// Assumes  sm_80, WG_X = 128, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#include "recurrence/mma/delta.clh"

#define PITCH RECUR_DELTA_PITCH

// Products of keys and of queries, 16 rows of a warp, with keys: of sixteens of columns up to its own.
INLINE void take_both_scores(float* of_keys, float* of_queries, uint keys, uint queries, uint warp, uint lane) {
  const uint row = warp * 16 * KEY_PITCH + mma_place_of_a(lane, KEY_PITCH);
  UNROLL for (uint i = 0; i < 8 * SIXTEENS; ++i) of_keys[i] = of_queries[i] = 0.0f;
  UNROLL for (uint n = 0; n < SIXTEENS; ++n) {
    if (n > warp) continue;
    float *k = of_keys + 8 * n, *q = of_queries + 8 * n;
    const uint column = keys + n * 16 * KEY_PITCH + mma_place_of_b(lane, KEY_PITCH);
    UNROLL for (uint step = 0; step < STEPS; ++step) {
      uint key[4], query[4], other[4];
      mma_load_blocks(key, MMA_CHUNK(keys + row, 2 * step));
      mma_load_blocks(query, MMA_CHUNK(queries + row, 2 * step));
      mma_load_blocks(other, MMA_CHUNK(column, 2 * step));
      mma_multiply_add(k, k + 4, key, other[0], other[1]);
      mma_multiply_add(k + 2, k + 6, key, other[2], other[3]);
      mma_multiply_add(q, q + 4, query, other[0], other[1]);
      mma_multiply_add(q + 2, q + 6, query, other[2], other[3]);
    }
  }
}

// Column j of the triangle, from scores of keys on.
INLINE void weigh_column(local float* column, const local float* factor, const local float* beta, uint j) {
  float product = 1.0f;
  ROLLED for (uint i = 0; i < DELTA_CHUNK; i += 4) {
    const float4 four = *(const local float4*)(column + i);
    const float4 factors = *(const local float4*)(factor + i), betas = *(const local float4*)(beta + i);
    float x[4] = {four.s0, four.s1, four.s2, four.s3};
    const float a[4] = {factors.s0, factors.s1, factors.s2, factors.s3};
    const float b[4] = {betas.s0, betas.s1, betas.s2, betas.s3};
    UNROLL for (uint n = 0; n < 4; ++n) {
      product *= i + n > j ? a[n] : 1.0f;
      x[n] *= product * b[n];
    }
    *(local float4*)(column + i) = (float4)(x[0], x[1], x[2], x[3]);
  }
}

// Of sixteen rows those from `first` on, less a column of the triangle times what is known.
INLINE void subtract_rows(float* x, const local float* column, float known, uint first) {
  UNROLL for (uint r = first / 4 * 4; r < 16; r += 4) {
    const float4 four = *(const local float4*)(column + r);
    const float t[4] = {four.s0, four.s1, four.s2, four.s3};
    UNROLL for (uint n = 0; n < 4; ++n) x[r + n] = r + n >= first ? fma(-t[n], known, x[r + n]) : x[r + n];
  }
}

// Column j of the solution for a unit, in place of column j of the triangle: sixteen rows at a time, less what rows before
// them add, and then one by one. An item has each column, and they wait for each other.
INLINE void solve_column(local float* triangle, uint j) {
  local float* column = triangle + j * PITCH;
  ROLLED for (uint row = 0; row < DELTA_CHUNK; row += 16) {
    float x[16];
    UNROLL for (uint r = 0; r < 16; ++r) x[r] = row + r == j ? 1.0f : 0.0f;
    ROLLED for (uint l = 0; l < row; l += 4) {
      const float4 four = *(const local float4*)(column + l);
      const float known[4] = {four.s0, four.s1, four.s2, four.s3};
      UNROLL for (uint n = 0; n < 4; ++n) subtract_rows(x, triangle + (l + n) * PITCH + row, known[n], 0);
    }
    UNROLL for (uint l = 0; l < 15; ++l) subtract_rows(x, triangle + (row + l) * PITCH + row, x[l], l + 1);
    GROUP_SYNC(1, DELTA_CHUNK);
    UNROLL for (uint r = 0; r < 16; r += 4)
      *(local float4*)(column + row + r) = (float4)(x[r], x[r + 1], x[r + 2], x[r + 3]);
  }
}

KERNEL void recurrence_delta_chunks(const global scalar* restrict query_elements,
                                    const global scalar* restrict key_elements,
                                    const global void* restrict beta_elements, const global void* restrict g_elements,
                                    global float* restrict scratch, const struct RecurArgs arguments) {
  const struct RecurArgs* args = &arguments;
  local uchar memory[RECUR_DELTA_SOLVE_BYTES] __attribute__((aligned(128)));
  const uint keys = LOCAL_ADDRESS(memory), queries = keys + RECUR_MMA_KEY_BYTES;
  local float* triangle = (local float*)memory;  // transposed
  local float* weights = triangle + DELTA_CHUNK * PITCH;
  local float* factor = (local float*)(memory + RECUR_DELTA_SHARED_BYTES);
  local float* beta = factor + DELTA_CHUNK;
  volatile local int* flags = (volatile local int*)(beta + DELTA_CHUNK);

  const uint item = (uint)get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint heads = ARGS(heads);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint slot = group / heads;
  if (slot >= ARGS(segment) || ARGS(sequences) == 0) return;
  const global int* boundaries = (const global int*)scratch + ARGS(boundaries);
  const uint sequence = sequence_of_chunk(args, boundaries, slot, DELTA_CHUNK);
  const Place place = place_of_sequence(args, boundaries, sequence, group % heads);
  const uint first =
      (slot - RECUR_DELTA_FIRST_CHUNK(place.batch * ARGS(tokens) + place.begin, sequence)) * DELTA_CHUNK;
  const uint length = place.end - place.begin;
  if (first >= length) return;

  const Operands on = {.query = query_elements, .key = key_elements, .gate = g_elements};
  copy_keys(keys, key_elements, args, place, args->key, 0, KEY_DIM, first, tokens_of(length - first), item);
  copy_keys(queries, query_elements, args, place, args->query, 0, KEY_DIM, first, tokens_of(length - first), item);
  if (item == 0) flags[0] = 0;
  bool odd = false;
  if (item < DELTA_CHUNK) {
    const float log_decay = shared_decay(&on, args, place, 0.0f, first + item, length);
    factor[item] = factor_of(log_decay);
    beta[item] = first + item < length ? beta_of(beta_elements, args, place, token_of(args, place, first + item)) : 0.0f;
    odd = !(log_decay <= 0.0f && fabs(beta[item]) <= LARGEST_BFLOAT16);
  }
  mma_copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);

  float of_keys[8 * SIXTEENS], of_queries[8 * SIXTEENS];
  take_both_scores(of_keys, of_queries, keys, queries, warp, lane);
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint n = 0; n < SIXTEENS; ++n) {
    if (n > warp) continue;
    UNROLL for (uint i = 0; i < 8; ++i) {
      const uint row = warp * 16 + lane / 4 + i / 4 * 8, column = n * 16 + lane % 4 * 2 + i % 2 + i / 2 % 2 * 8;
      triangle[column * PITCH + row] = of_keys[8 * n + i];
      weights[row * PITCH + column] = of_queries[8 * n + i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  global uchar* to = chunk_scratch(scratch, args, slot, place.head);
  global float* numbers = (global float*)(to + RECUR_DELTA_NUMBERS);
  const uint j = item % DELTA_CHUNK;
  if (item < DELTA_CHUNK) {
    weigh_column(triangle + j * PITCH, factor, beta, j);
    GROUP_SYNC(1, DELTA_CHUNK);
    solve_column(triangle, j);
  } else {
    float since = 1.0f, until = 1.0f;
    ROLLED for (uint i = 0; i < DELTA_CHUNK; ++i) {
      since *= i <= j ? factor[i] : 1.0f;
      until *= i > j ? factor[i] : 1.0f;
      weights[i * PITCH + j] = i >= j ? weights[i * PITCH + j] * until : 0.0f;
    }
    numbers[j] = since;
    numbers[DELTA_CHUNK + j] = until;
    numbers[2 * DELTA_CHUNK + j] = beta[j];
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  UNROLL for (uint n = 0; n < DELTA_CHUNK * 8 / WG_X; ++n) {
    // Of a warp four rows by eight, so that few of them are in the same bank, and all of 64 bytes.
    const uint i = item + n * WG_X, row = i / 64 * 8 + i % 8, chunk = i / 8 % 8, place = 16 * (row * 8 + chunk);
    if (!IN_TRIANGLE(row, chunk)) continue;
    uint high[4], low[4], weight[4];
    UNROLL for (uint pair = 0; pair < 4; ++pair) {
      const uint column = chunk * 8 + 2 * pair;
      const float x = triangle[column * PITCH + row], y = triangle[(column + 1) * PITCH + row];
      const float w = weights[row * PITCH + column], z = weights[row * PITCH + column + 1];
      high[pair] = pack_bfloat16(x, y);
      low[pair] = pack_bfloat16(x - as_float(high[pair] << 16), y - as_float(high[pair] & 0xffff0000u));
      weight[pair] = pack_scalars(w, z);
      odd = odd || !(fabs(x) <= LARGEST_BFLOAT16 && fabs(y) <= LARGEST_BFLOAT16);
      odd = odd || !(fabs(w) <= LARGEST_SCALAR && fabs(z) <= LARGEST_SCALAR);
    }
    *(global uint4*)(to + place) = (uint4)(high[0], high[1], high[2], high[3]);
    *(global uint4*)(to + RECUR_DELTA_SQUARE + place) = (uint4)(low[0], low[1], low[2], low[3]);
    *(global uint4*)(to + 2 * RECUR_DELTA_SQUARE + place) = (uint4)(weight[0], weight[1], weight[2], weight[3]);
  }
  if (odd) flags[0] = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) ((global int*)numbers)[DELTA_MARK] = flags[0];
}
