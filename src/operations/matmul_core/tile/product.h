// SPDX-License-Identifier: Apache-2.0
// The body of matmul/tile/product, in the text that OpenCL C and GLSL share. The language brings
// HELD(i), vectors in registers; TILE(i), vectors in local memory; PRODUCT(i), sums; TOTAL(i),
// where BLOCKS says that blocks of them are added up, the words of that; ADD_PRODUCTS(a, b), the
// products of a step from where the item's rows and columns begin; and how elements are read.

#include "operations/matmul_core/core/fetch.h"

// Where a square lies: item by item along the axis that memory runs along.
#define TILE_SQUARE_ROW(square, by_terms, squares) \
  (((by_terms) ? (square) / TO_U32(TILE_PARTS) : (square) % (squares)) * 4u)
#define TILE_SQUARE_PART(square, by_terms, squares) \
  ((by_terms) ? (square) % TO_U32(TILE_PARTS) : (square) / (squares))

// A square whose rows and terms all exist, with vectors along one of its axes: four of them as they
// lie. They are turned when they are stored, for who turns them waits for them.
#define TILE_FETCH_WHOLE(LOAD_VECTOR, type, at, row, row_step, term, term_step, by_terms, to) \
  {                                                                                           \
    const u32 begin = at + (row) * (row_step) + (term) * (term_step);                         \
    const u32 apart = (by_terms) ? (row_step) : (term_step);                                  \
    UNROLL for (u32 j = 0u; j < 4u; ++j) HELD(to + j) = LOAD_VECTOR(begin + j * apart, type); \
  }

#define TILE_FETCH_STEP()                                                                          \
  {                                                                                                \
    whole = whole_tile && term0 + TO_U32(BLOCK_K) <= ARGS(k);                                      \
    UNROLL for (u32 i = 0u; i < TO_U32(TILE_FETCHES); ++i) {                                       \
      u32 square = lane + i * TO_U32(WG_X);                                                        \
      if (square < TO_U32(TILE_A_SQUARES)) {                                                       \
        const u32 row = row0 + TILE_SQUARE_ROW(square, a_by_terms, TO_U32(BLOCK_M) / 4u);          \
        const u32 term = term0 + 4u * TILE_SQUARE_PART(square, a_by_terms, TO_U32(BLOCK_M) / 4u);  \
        if (whole)                                                                                 \
          TILE_FETCH_WHOLE(LOAD_A_VECTOR, A_TYPE, a_at, row, ARGS(a).row, term, ARGS(a).column,    \
                           a_by_terms, 4u * i)                                                     \
        else                                                                                       \
          MATMUL_FETCH(LOAD_A_VECTOR, LOAD_A_STEPS, A_TYPE, a_at, row, ARGS(m), ARGS(a).row, term, \
                       ARGS(k), ARGS(a).column, a_by_terms, a_by_rows, 4u * i)                     \
      } else if (square < TO_U32(TILE_A_SQUARES + TILE_B_SQUARES)) {                               \
        square -= TO_U32(TILE_A_SQUARES);                                                          \
        const u32 row = column0 + TILE_SQUARE_ROW(square, b_by_terms, TO_U32(BLOCK_N) / 4u);       \
        const u32 term = term0 + 4u * TILE_SQUARE_PART(square, b_by_terms, TO_U32(BLOCK_N) / 4u);  \
        if (whole)                                                                                 \
          TILE_FETCH_WHOLE(LOAD_B_VECTOR, B_TYPE, b_at, row, ARGS(b).column, term, ARGS(b).row,    \
                           b_by_terms, 4u * i)                                                     \
        else                                                                                       \
          MATMUL_FETCH(LOAD_B_VECTOR, LOAD_B_STEPS, B_TYPE, b_at, row, ARGS(n), ARGS(b).column,    \
                       term, ARGS(k), ARGS(b).row, b_by_terms, b_by_columns, 4u * i)               \
      }                                                                                            \
    }                                                                                              \
    term0 += TO_U32(BLOCK_K);                                                                      \
    if (term0 >= ARGS(k)) {                                                                        \
      term0 = 0u;                                                                                  \
      ++summand;                                                                                   \
      TILE_BEGIN_SUMMAND()                                                                         \
    }                                                                                              \
  }
#define TILE_BEGIN_SUMMAND()                                                \
  {                                                                         \
    const u32 outer = summand / ARGS(sums1), inner = summand % ARGS(sums1); \
    a_at = a_base + outer * ARGS(a_sum0) + inner * ARGS(a_sum1);            \
    b_at = b_base + outer * ARGS(b_sum0) + inner * ARGS(b_sum1);            \
  }

// Row 4 g + j of a tile lies at place g + j times a quarter of the rows: vectors of neighbouring
// squares are in different banks, and four columns of an item are neighbours in memory.
#define TILE_TURNED(at, axis) \
  MAKE_FLOAT4(HELD(at).axis, HELD(at + 1u).axis, HELD(at + 2u).axis, HELD(at + 3u).axis)
#define TILE_STORE_STEP()                                                                         \
  {                                                                                               \
    UNROLL for (u32 i = 0u; i < TO_U32(TILE_FETCHES); ++i) {                                      \
      u32 square = lane + i * TO_U32(WG_X);                                                       \
      if (square < TO_U32(TILE_A_SQUARES + TILE_B_SQUARES)) {                                     \
        const bool of_a = square < TO_U32(TILE_A_SQUARES);                                        \
        const u32 quarter = of_a ? TO_U32(BLOCK_M) / 4u : TO_U32(BLOCK_N) / 4u;                   \
        const bool by_terms = of_a ? a_by_terms : b_by_terms;                                     \
        if (!of_a) square -= TO_U32(TILE_A_SQUARES);                                              \
        const u32 place =                                                                         \
            (of_a ? 0u : TO_U32(BLOCK_M)) + TILE_SQUARE_ROW(square, by_terms, quarter) / 4u;      \
        const u32 part = TILE_SQUARE_PART(square, by_terms, quarter);                             \
        const u32 to = place * TO_U32(TILE_STRIDE) + part, apart = quarter * TO_U32(TILE_STRIDE); \
        if (whole && !by_terms) {                                                                 \
          TILE(to) = TILE_TURNED(4u * i, x);                                                      \
          TILE(to + apart) = TILE_TURNED(4u * i, y);                                              \
          TILE(to + 2u * apart) = TILE_TURNED(4u * i, z);                                         \
          TILE(to + 3u * apart) = TILE_TURNED(4u * i, w);                                         \
        } else {                                                                                  \
          UNROLL for (u32 j = 0u; j < 4u; ++j) TILE(to + j * apart) = HELD(4u * i + j);           \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }

// Row and column of vector `vector` of an item's sums.
#define TILE_PLACE(vector) (lane_m + TO_U32(LANES_M) * ((vector) / TO_U32(COLUMNS / 4)))
#define TILE_ROW(vector)                                     \
  (row0 + TILE_PLACE(vector) % (TO_U32(BLOCK_M) / 4u) * 4u + \
   TILE_PLACE(vector) / (TO_U32(BLOCK_M) / 4u))
#define TILE_COLUMN(vector) \
  (column0 + 4u * (lane_n + TO_U32(LANES_N) * ((vector) % TO_U32(COLUMNS / 4))))

// The sums of block `block` of the terms join the total.
#define TILE_ADD_BLOCK(block)                                                                      \
  {                                                                                                \
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS / 4); ++i) {                                 \
      if (BLOCKS == MATMUL_BLOCKS_WHOLE) {                                                         \
        UNROLL for (u32 j = 0u; j < 4u; ++j) TOTAL(4u * i + j) += TO_INT(PRODUCT(4u * i + j));     \
      } else if (TILE_ROW(i) < ARGS(m) && TILE_COLUMN(i) < ARGS(n)) {                              \
        const FLOAT4 scaled =                                                                      \
            matmul_scaled(MATMUL_ARGUMENTS batch, TILE_ROW(i), TILE_COLUMN(i), block,              \
                          MAKE_FLOAT4(PRODUCT(4u * i), PRODUCT(4u * i + 1u), PRODUCT(4u * i + 2u), \
                                      PRODUCT(4u * i + 3u)));                                      \
        TOTAL(4u * i) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i)) + scaled.x);                    \
        TOTAL(4u * i + 1u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 1u)) + scaled.y);          \
        TOTAL(4u * i + 2u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 2u)) + scaled.z);          \
        TOTAL(4u * i + 3u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 3u)) + scaled.w);          \
      }                                                                                            \
      UNROLL for (u32 j = 0u; j < 4u; ++j) PRODUCT(4u * i + j) = 0.0f;                             \
    }                                                                                              \
  }

const u32 lane = LOCAL_ID_X, lane_n = TILE_LANE_N(lane), lane_m = TILE_LANE_M(lane);
const u32 features = ARGS(features);
const bool a_by_terms = (features & MATMUL_A_BY_TERMS) != 0u;
const bool a_by_rows = (features & MATMUL_A_BY_ROWS) != 0u;
const bool b_by_terms = (features & MATMUL_B_BY_TERMS) != 0u;
const bool b_by_columns = (features & MATMUL_B_BY_COLUMNS) != 0u;
const u32 k_steps = (ARGS(k) + TO_U32(BLOCK_K) - 1u) / TO_U32(BLOCK_K);
const u32 steps = ARGS(sums) * k_steps, splits = ARGS(splits);
const u32 steps_each = (steps + splits - 1u) / splits;
const u32 tiles_m = (ARGS(m) + TO_U32(BLOCK_M) - 1u) / TO_U32(BLOCK_M);
const u32 tiles_n = (ARGS(n) + TO_U32(BLOCK_N) - 1u) / TO_U32(BLOCK_N);
const u32 tiles = tiles_m * tiles_n, units = tiles * ARGS(batches) * splits;
for (u32 unit = GROUP_ID_X; UNIFORM(unit < units); unit += GROUP_COUNT_X) {
  // Bands of eight rows of tiles are walked by columns: work-groups that run at the same time share
  // what they read.
  const u32 tile = unit % tiles, batch = unit / tiles % ARGS(batches),
            split = unit / tiles / ARGS(batches);
  const u32 band = tile / (8u * tiles_n), in_band = tile % (8u * tiles_n);
  const u32 height = min(tiles_m - 8u * band, 8u);
  const u32 row0 = (8u * band + in_band % height) * TO_U32(BLOCK_M);
  const u32 column0 = in_band / height * TO_U32(BLOCK_N);
  const u32 a_base = matmul_base(MATMUL_ARGUMENTS ARGS(a), batch);
  const u32 b_base = matmul_base(MATMUL_ARGUMENTS ARGS(b), batch);
  const u32 first = min(split * steps_each, steps), last = min(first + steps_each, steps);
  UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) PRODUCT(i) = 0.0f;
  if (BLOCKS != MATMUL_BLOCKS_NONE) {
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) TOTAL(i) = 0;
  }
  // Where the next step's operands begin.
  u32 summand = first / k_steps, term0 = first % k_steps * TO_U32(BLOCK_K), a_at, b_at;
  TILE_BEGIN_SUMMAND()
  const bool whole_tile = BLOCKS == MATMUL_BLOCKS_NONE && row0 + TO_U32(BLOCK_M) <= ARGS(m) &&
                          column0 + TO_U32(BLOCK_N) <= ARGS(n) && (a_by_terms || a_by_rows) &&
                          (b_by_terms || b_by_columns);
  bool whole = false;  // the step that is on its way
  // A round fetches step `step` while the products of the one before are taken.
  for (u32 step = first; UNIFORM(first < last && step <= last); ++step) {
    if (step < last) TILE_FETCH_STEP()
    if (step > first)
      ADD_PRODUCTS(lane_m * TO_U32(TILE_STRIDE), (TO_U32(BLOCK_M) + lane_n) * TO_U32(TILE_STRIDE));
    // One summand: only gradients have more.
    const u32 terms = step * TO_U32(BLOCK_K);
    const bool ends_block = step > first && (terms % TO_U32(MATMUL_BLOCK) == 0u || step == last);
    if (BLOCKS != MATMUL_BLOCKS_NONE && ends_block)
      TILE_ADD_BLOCK((terms - 1u) / TO_U32(MATMUL_BLOCK))
    TILE_BARRIER();
    if (step < last) TILE_STORE_STEP()
    TILE_BARRIER();
  }
  // One by one, for what follows is long; the sums stay in registers, where nothing can be looked
  // up.
  ROLLED for (u32 vector = 0u; vector < TO_U32(ROWS * COLUMNS / 4); ++vector) {
    FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    INT4 words = MAKE_INT4(0, 0, 0, 0);
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS / 4); ++i) {
      if (i == vector) {
        if (BLOCKS == MATMUL_BLOCKS_NONE) {
          sum = MAKE_FLOAT4(PRODUCT(4u * i), PRODUCT(4u * i + 1u), PRODUCT(4u * i + 2u),
                            PRODUCT(4u * i + 3u));
        } else {
          words =
              MAKE_INT4(TOTAL(4u * i), TOTAL(4u * i + 1u), TOTAL(4u * i + 2u), TOTAL(4u * i + 3u));
        }
      }
    }
    if (BLOCKS == MATMUL_BLOCKS_SCALED) sum = FLOATS_OF_WORDS(words);
    const u32 row = TILE_ROW(vector), column = TILE_COLUMN(vector);
    if (row < ARGS(m) && column < ARGS(n)) {
      if (BLOCKS == MATMUL_BLOCKS_WHOLE) {
        matmul_finish_whole(MATMUL_ARGUMENTS batch, row, column, words);
      } else if (splits > 1u) {
        const u32 vectors = (ARGS(n) + 3u) / 4u;
        STORE_PARTIAL(((split * ARGS(batches) + batch) * ARGS(m) + row) * vectors + column / 4u,
                      sum);
      } else {
        matmul_finish(MATMUL_ARGUMENTS batch, row, column, sum);
      }
    }
  }
}
