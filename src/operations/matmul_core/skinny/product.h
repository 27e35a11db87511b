// SPDX-License-Identifier: Apache-2.0
// The body of matmul/skinny/product, in the text that OpenCL C and GLSL share. The language brings
// HELD(i), vectors in registers; PRODUCT(i), sums; SHARED(i), vectors in local memory; and how
// elements are read.
#include "operations/matmul_core/core/fetch.h"

#define SKINNY_TERM(s) (term0 + (s)*TO_U32(4 * LANES_K))
#define SKINNY_COLUMN(g) (column0 + (g)*TO_U32(4 * LANES_N))

// Squares s of b, all of which exist, to HELD(s COLUMNS) and on: a vector for each column.
#define SKINNY_FETCH_SQUARE(s, g)                                                              \
  {                                                                                            \
    const u32 to = (s)*TO_U32(COLUMNS) + 4u * (g);                                             \
    if (B_ORDER == 1) {                                                                        \
      UNROLL for (u32 j = 0u; j < 4u; ++j) {                                                   \
        const u32 column = min(SKINNY_COLUMN(g) + j, ARGS(n) - 1u);                            \
        HELD(to + j) = LOAD_B_VECTOR(b_at + column * ARGS(b).column + SKINNY_TERM(s), B_TYPE); \
      }                                                                                        \
    } else {                                                                                   \
      const u32 at = b_at + SKINNY_TERM(s) * ARGS(b).row + SKINNY_COLUMN(g);                   \
      const FLOAT4 line0 = LOAD_B_VECTOR(at, B_TYPE);                                          \
      const FLOAT4 line1 = LOAD_B_VECTOR(at + ARGS(b).row, B_TYPE);                            \
      const FLOAT4 line2 = LOAD_B_VECTOR(at + 2u * ARGS(b).row, B_TYPE);                       \
      const FLOAT4 line3 = LOAD_B_VECTOR(at + 3u * ARGS(b).row, B_TYPE);                       \
      HELD(to) = MAKE_FLOAT4(line0.x, line1.x, line2.x, line3.x);                              \
      HELD(to + 1u) = MAKE_FLOAT4(line0.y, line1.y, line2.y, line3.y);                         \
      HELD(to + 2u) = MAKE_FLOAT4(line0.z, line1.z, line2.z, line3.z);                         \
      HELD(to + 3u) = MAKE_FLOAT4(line0.w, line1.w, line2.w, line3.w);                         \
    }                                                                                          \
  }

// Four terms of a row of a times those of the columns at HELD(from).
#define SKINNY_ADD_ROW(r, x, from)                                                     \
  UNROLL for (u32 c = 0u; c < TO_U32(COLUMNS); ++c) PRODUCT((r)*TO_U32(COLUMNS) + c) = \
      tile_dot_add(x, HELD((from) + c), PRODUCT((r)*TO_U32(COLUMNS) + c));
// The same of any order, and 0 where there are no terms.
#define SKINNY_ADD_ANY(term, from)                                                           \
  UNROLL for (u32 r0 = 0u; r0 < TO_U32(ROWS); r0 += 4u) {                                    \
    MATMUL_FETCH(LOAD_A_VECTOR, LOAD_A_STEPS, A_TYPE, a_at, row0 + r0, ARGS(m), ARGS(a).row, \
                 (term), ARGS(k), ARGS(a).column, a_by_terms, a_by_rows, SKINNY_A)           \
    UNROLL for (u32 j = 0u; j < 4u; ++j) {                                                   \
      if (r0 + j < TO_U32(ROWS)) {                                                           \
        const FLOAT4 x = HELD(SKINNY_A + j);                                                 \
        SKINNY_ADD_ROW(r0 + j, x, from)                                                      \
      }                                                                                      \
    }                                                                                        \
  }

// Of the sums of each output, LANES_K neighbours, every eighth `apart` adds up eight.
#define SKINNY_ADD_LANES(apart)                                                             \
  {                                                                                         \
    SHARED_BARRIER();                                                                       \
    const u32 sums = (TO_U32(LANES_K) + 8u * apart - 1u) / (8u * apart);                    \
    const u32 count = TO_U32(SKINNY_BATCH * LANES_N) * sums;                                \
    UNROLL for (u32 i0 = 0u; i0 < count; i0 += TO_U32(WG_X)) {                              \
      const u32 i = i0 + item;                                                              \
      if (i < count) {                                                                      \
        const u32 place = i % sums * 8u * apart, from = i / sums * TO_U32(LANES_K) + place; \
        FLOAT4 sum = SHARED(from);                                                          \
        for (u32 j = 1u; j < 8u && place + j * apart < TO_U32(LANES_K); ++j)                \
          sum += SHARED(from + j * apart);                                                  \
        SHARED(from) = sum;                                                                 \
      }                                                                                     \
    }                                                                                       \
  }

const u32 item = LOCAL_ID_X, features = ARGS(features);
const bool a_by_terms = (features & MATMUL_A_BY_TERMS) != 0u;
const bool a_by_rows = (features & MATMUL_A_BY_ROWS) != 0u;
// Neighbouring items read neighbouring elements of b.
const bool b_by_terms = B_ORDER == 0 ? ARGS(b).row < ARGS(b).column : B_ORDER == 1;
const u32 lane_k = b_by_terms ? item % TO_U32(LANES_K) : item / TO_U32(LANES_N);
const u32 lane_n = b_by_terms ? item / TO_U32(LANES_K) : item % TO_U32(LANES_N);
const u32 rounds = (ARGS(k) + TO_U32(BLOCK_K) - 1u) / TO_U32(BLOCK_K);
const u32 steps = ARGS(sums) * rounds, splits = ARGS(splits);
const u32 steps_each = (steps + splits - 1u) / splits;
const u32 blocks_m = (ARGS(m) + TO_U32(ROWS) - 1u) / TO_U32(ROWS);
const u32 blocks_n = (ARGS(n) + TO_U32(BLOCK_N) - 1u) / TO_U32(BLOCK_N);
const u32 blocks = blocks_m * blocks_n, units = blocks * ARGS(batches) * splits;
for (u32 unit = GROUP_ID_X; UNIFORM(unit < units); unit += GROUP_COUNT_X) {
  const u32 block = unit % blocks, batch = unit / blocks % ARGS(batches),
            split = unit / blocks / ARGS(batches);
  // Neighbours share columns of b.
  const u32 row0 = block % blocks_m * TO_U32(ROWS), block0 = block / blocks_m * TO_U32(BLOCK_N);
  const u32 column0 = block0 + 4u * lane_n;
  const u32 a_base = matmul_base(MATMUL_ARGUMENTS ARGS(a), batch);
  const u32 b_base = matmul_base(MATMUL_ARGUMENTS ARGS(b), batch);
  const u32 first = min(split * steps_each, steps), last = min(first + steps_each, steps);
  const bool whole = B_ORDER == 2 ? block0 + TO_U32(BLOCK_N) <= ARGS(n) : B_ORDER == 1;
  UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) PRODUCT(i) = 0.0f;
  for (u32 step = first; step < last; ++step) {
    const u32 summand = step / rounds, round0 = step % rounds * TO_U32(BLOCK_K);
    const u32 outer = summand / ARGS(sums1), inner = summand % ARGS(sums1);
    const u32 a_at = a_base + outer * ARGS(a_sum0) + inner * ARGS(a_sum1);
    const u32 b_at = b_base + outer * ARGS(b_sum0) + inner * ARGS(b_sum1);
    const u32 term0 = round0 + 4u * lane_k;
    if (whole && round0 + TO_U32(BLOCK_K) <= ARGS(k)) {
      UNROLL for (u32 s = 0u; s < TO_U32(SQUARES); ++s) {
        UNROLL for (u32 g = 0u; g < TO_U32(COLUMNS / 4); ++g) SKINNY_FETCH_SQUARE(s, g)
      }
      if (a_by_terms) {
        UNROLL for (u32 s = 0u; s < TO_U32(SQUARES); ++s) {
          UNROLL for (u32 r = 0u; r < TO_U32(ROWS); ++r) {
            const u32 row = min(row0 + r, ARGS(m) - 1u);
            const FLOAT4 x = LOAD_A_VECTOR(a_at + row * ARGS(a).row + SKINNY_TERM(s), A_TYPE);
            SKINNY_ADD_ROW(r, x, s * TO_U32(COLUMNS))
          }
        }
      } else {
        UNROLL for (u32 s = 0u; s < TO_U32(SQUARES); ++s) {
          SKINNY_ADD_ANY(SKINNY_TERM(s), s * TO_U32(COLUMNS))
        }
      }
    } else {
      ROLLED for (u32 s = 0u; s < TO_U32(SQUARES); ++s) {
        const u32 term = SKINNY_TERM(s);
        UNROLL for (u32 g = 0u; g < TO_U32(COLUMNS / 4);
                    ++g){MATMUL_FETCH(LOAD_B_VECTOR, LOAD_B_STEPS, B_TYPE, b_at, SKINNY_COLUMN(g),
                                      ARGS(n), ARGS(b).column, term, ARGS(k), ARGS(b).row,
                                      B_ORDER == 1, B_ORDER == 2, 4u * g)} SKINNY_ADD_ANY(term, 0u)
      }
    }
  }
  // Sums of lanes, a few vectors of every item at a time.
  UNROLL for (u32 i0 = 0u; i0 < TO_U32(SKINNY_VECTORS); i0 += TO_U32(SKINNY_BATCH)) {
    UNROLL for (u32 i = 0u; i < TO_U32(SKINNY_BATCH); ++i) {
      const u32 at = 4u * (i0 + i);
      if (i0 + i < TO_U32(SKINNY_VECTORS)) {
        SHARED(i * TO_U32(WG_X) + lane_n * TO_U32(LANES_K) + lane_k) =
            MAKE_FLOAT4(PRODUCT(at), PRODUCT(at + 1u), PRODUCT(at + 2u), PRODUCT(at + 3u));
      }
    }
    SKINNY_ADD_LANES(1u)
    if (TO_U32(LANES_K) > 8u) SKINNY_ADD_LANES(8u)
    if (TO_U32(LANES_K) > 64u) SKINNY_ADD_LANES(64u)
    SHARED_BARRIER();
    UNROLL for (u32 first_i = 0u; first_i < TO_U32(SKINNY_BATCH * LANES_N);
                first_i += TO_U32(WG_X)) {
      const u32 i = first_i + item;
      const u32 vector = i0 + i / TO_U32(LANES_N);
      const u32 row = row0 + vector / TO_U32(COLUMNS / 4);
      const u32 column =
          block0 + 4u * (i % TO_U32(LANES_N) + vector % TO_U32(COLUMNS / 4) * TO_U32(LANES_N));
      if (i < TO_U32(SKINNY_BATCH * LANES_N) && vector < TO_U32(SKINNY_VECTORS) && row < ARGS(m) &&
          column < ARGS(n)) {
        const FLOAT4 sum = SHARED(i * TO_U32(LANES_K));
        if (splits > 1u) {
          const u32 vectors = (ARGS(n) + 3u) / 4u;
          STORE_PARTIAL(((split * ARGS(batches) + batch) * ARGS(m) + row) * vectors + column / 4u,
                        sum);
        } else {
          matmul_finish(MATMUL_ARGUMENTS batch, row, column, sum);
        }
      }
    }
    SHARED_BARRIER();
  }
}
