// SPDX-License-Identifier: Apache-2.0
// The body of matmul/grouped/product, in the text that OpenCL C and GLSL share. The language brings
// LIST(i), the work list; TABLE(i), words of its table of blocks; HELD(i), vectors in registers;
// TILE(i), vectors in local memory; PRODUCT(i), sums; TOTAL(i), where BLOCKS says that blocks of
// them are added up, the words of that; ADD_PRODUCTS(a, b), the products of a step from where the
// item's rows and columns begin; and how elements are read and written. Tiles lie as those of
// matmul_core/tile.
#include "operations/matmul_core/core/fetch.h"

// Where a square lies: item by item along the axis that memory runs along.
#define SQUARE_ROW(square, by_terms, squares) \
  (((by_terms) ? (square) / TO_U32(TILE_PARTS) : (square) % (squares)) * 4u)
#define SQUARE_PART(square, by_terms, squares) \
  ((by_terms) ? (square) % TO_U32(TILE_PARTS) : (square) / (squares))

// Row and column of vector `vector` of an item's sums.
#define GROUPED_PLACE(vector) (lane_m + TO_U32(LANES_M) * ((vector) / TO_U32(COLUMNS / 4)))
#define GROUPED_ROW(vector) \
  (row0 + GROUPED_PLACE(vector) % quarter_m * 4u + GROUPED_PLACE(vector) / quarter_m)
#define GROUPED_COLUMN(vector) \
  (column0 + 4u * (lane_n + TO_U32(LANES_N) * ((vector) % TO_U32(COLUMNS / 4))))

// Four columns of a row, sums or those of block `block` of the terms, times their scales.
#define GROUPED_SCALE(sum, at_row, at_column, block)                                              \
  {                                                                                               \
    if ((features & GROUPED_SCALE_A) != 0u) {                                                     \
      const u32 shared_rows = (features & GROUPED_SCALE_ROWS) != 0u ? TO_U32(MATMUL_BLOCK) : 1u;  \
      sum *= LOAD_SCALE_A(ARGS(scale_a).offset + (at_row) / shared_rows * ARGS(scale_a).row +     \
                          (block)*ARGS(scale_a).term);                                            \
    }                                                                                             \
    if ((features & GROUPED_SCALE_B) != 0u) {                                                     \
      const bool shared_columns = (features & GROUPED_SCALE_COLUMNS) != 0u;                       \
      const u32 step = ARGS(scale_b).column;                                                      \
      const u32 at = ARGS(scale_b).offset + group * ARGS(scale_b).group +                         \
                     (block)*ARGS(scale_b).term +                                                 \
                     (shared_columns ? (at_column) / TO_U32(MATMUL_BLOCK) : (at_column)) * step;  \
      const float first = LOAD_SCALE_B(at);                                                       \
      FLOAT4 scale = MAKE_FLOAT4(first, first, first, first); /* whole vectors share a block's */ \
      if (!shared_columns && step != 0u) {                                                        \
        if ((at_column) + 1u < n) scale.y = LOAD_SCALE_B(at + step);                              \
        if ((at_column) + 2u < n) scale.z = LOAD_SCALE_B(at + 2u * step);                         \
        if ((at_column) + 3u < n) scale.w = LOAD_SCALE_B(at + 3u * step);                         \
      }                                                                                           \
      sum *= scale;                                                                               \
    }                                                                                             \
  }

// The sums of block `block` of the terms join the total.
#define GROUPED_ADD_BLOCK(block)                                                                 \
  {                                                                                              \
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS / 4); ++i) {                               \
      if (BLOCKS == MATMUL_BLOCKS_WHOLE) {                                                       \
        UNROLL for (u32 j = 0u; j < 4u; ++j) TOTAL(4u * i + j) += TO_INT(PRODUCT(4u * i + j));   \
      } else if (GROUPED_ROW(i) < m && GROUPED_COLUMN(i) < n) {                                  \
        FLOAT4 scaled = MAKE_FLOAT4(PRODUCT(4u * i), PRODUCT(4u * i + 1u), PRODUCT(4u * i + 2u), \
                                    PRODUCT(4u * i + 3u));                                       \
        GROUPED_SCALE(scaled, GROUPED_ROW(i), GROUPED_COLUMN(i), block)                          \
        TOTAL(4u * i) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i)) + scaled.x);                  \
        TOTAL(4u * i + 1u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 1u)) + scaled.y);        \
        TOTAL(4u * i + 2u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 2u)) + scaled.z);        \
        TOTAL(4u * i + 3u) = WORD_OF_FLOAT(FLOAT_OF_WORD(TOTAL(4u * i + 3u)) + scaled.w);        \
      }                                                                                          \
      UNROLL for (u32 j = 0u; j < 4u; ++j) PRODUCT(4u * i + j) = 0.0f;                           \
    }                                                                                            \
  }

const u32 lane = LOCAL_ID_X, lane_n = lane % TO_U32(LANES_N), lane_m = lane / TO_U32(LANES_N);
const u32 features = ARGS(features), n = ARGS(n), items = LIST(0u).x;
const bool over_terms = RAGGED == GROUPED_TERMS, over_rows = RAGGED == GROUPED_ROWS;
const bool over_blocks = RAGGED == GROUPED_BLOCKS;
const u32 quarter_m = TO_U32(BLOCK_M) / 4u, quarter_n = TO_U32(BLOCK_N) / 4u;
const u32 tiles_each = over_rows ? 1u : (ARGS(m) + TO_U32(BLOCK_M) - 1u) / TO_U32(BLOCK_M);
const u32 tiles_m = items * tiles_each, tiles_n = (n + TO_U32(BLOCK_N) - 1u) / TO_U32(BLOCK_N);
for (u32 unit = GROUP_ID_X; UNIFORM(unit < tiles_m * tiles_n); unit += GROUP_COUNT_X) {
  // Bands of eight rows of tiles are walked by columns: work-groups that run at the same time share
  // what they read.
  const u32 band = unit / (8u * tiles_n), in_band = unit % (8u * tiles_n);
  const u32 height = min(tiles_m - 8u * band, 8u), tile = 8u * band + in_band % height;
  const u32 column0 = in_band / height * TO_U32(BLOCK_N);
  const UINT4 entry = LIST(1u + tile / tiles_each);
  const u32 group = entry.x, from = entry.y;
  const bool is_held = entry.w != 0u;
  const u32 row0 = over_rows ? from : tile % tiles_each * TO_U32(BLOCK_M);
  const u32 m = over_rows ? entry.z : ARGS(m);
  const u32 k = over_terms ? entry.z - from : is_held ? ARGS(k) : 0u;
  const u32 a_at =
      ARGS(a).offset + group * ARGS(a).group + (over_terms ? from * ARGS(a).column : 0u);
  const u32 b_at = ARGS(b).offset + group * ARGS(b).group + (over_terms ? from * ARGS(b).row : 0u);
  // Vectors along the ragged axis are aligned where the group is.
  const bool whole = from % 4u == 0u;
  const bool a_by_terms = (features & GROUPED_A_BY_TERMS) != 0u && (whole || !over_terms);
  const bool a_by_rows = (features & GROUPED_A_BY_ROWS) != 0u && (whole || !over_rows);
  const bool b_by_terms = (features & GROUPED_B_BY_TERMS) != 0u && (whole || !over_terms);
  const bool b_by_columns = (features & GROUPED_B_BY_COLUMNS) != 0u;
  const u32 steps_each = (k + TO_U32(BLOCK_K) - 1u) / TO_U32(BLOCK_K);
  const u32 steps = over_blocks ? steps_each * (entry.z - from) : steps_each;
  UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) PRODUCT(i) = 0.0f;
  if (BLOCKS != MATMUL_BLOCKS_NONE) {
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS); ++i) TOTAL(i) = 0;
  }
  // A round fetches step `step` while the products of the one before are taken.
  for (u32 step = 0u; UNIFORM(steps != 0u && step <= steps); ++step) {
    if (step < steps) {
      u32 term0 = step * TO_U32(BLOCK_K), a_from = a_at, b_from = b_at;
      if (over_blocks) {
        const u32 block = from + step / steps_each;
        term0 = step % steps_each * TO_U32(BLOCK_K);
        a_from += TABLE(2u * block);
        b_from += TABLE(2u * block + 1u);
      }
      UNROLL for (u32 i = 0u; i < TO_U32(TILE_FETCHES); ++i) {
        u32 square = lane + i * TO_U32(WG_X);
        if (square < TO_U32(TILE_A_SQUARES)) {
          const u32 row = row0 + SQUARE_ROW(square, a_by_terms, quarter_m);
          const u32 term = term0 + 4u * SQUARE_PART(square, a_by_terms, quarter_m);
          MATMUL_FETCH(LOAD_A_VECTOR, LOAD_A_STEPS, A_TYPE, a_from, row, m, ARGS(a).row, term, k,
                       ARGS(a).column, a_by_terms, a_by_rows, 4u * i)
        } else if (square < TO_U32(TILE_A_SQUARES + TILE_B_SQUARES)) {
          square -= TO_U32(TILE_A_SQUARES);
          const u32 row = column0 + SQUARE_ROW(square, b_by_terms, quarter_n);
          const u32 term = term0 + 4u * SQUARE_PART(square, b_by_terms, quarter_n);
          MATMUL_FETCH(LOAD_B_VECTOR, LOAD_B_STEPS, B_TYPE, b_from, row, n, ARGS(b).column, term, k,
                       ARGS(b).row, b_by_terms, b_by_columns, 4u * i)
        }
      }
    }
    if (step > 0u)
      ADD_PRODUCTS(lane_m * TO_U32(TILE_STRIDE), (TO_U32(BLOCK_M) + lane_n) * TO_U32(TILE_STRIDE));
    const u32 terms = step * TO_U32(BLOCK_K);
    const bool ends_block = step > 0u && (terms % TO_U32(MATMUL_BLOCK) == 0u || step == steps);
    if (BLOCKS != MATMUL_BLOCKS_NONE && ends_block)
      GROUPED_ADD_BLOCK((terms - 1u) / TO_U32(MATMUL_BLOCK))
    TILE_BARRIER();
    if (step < steps) {
      UNROLL for (u32 i = 0u; i < TO_U32(TILE_FETCHES); ++i) {
        u32 square = lane + i * TO_U32(WG_X);
        if (square < TO_U32(TILE_A_SQUARES + TILE_B_SQUARES)) {
          const bool of_a = square < TO_U32(TILE_A_SQUARES);
          const u32 quarter = of_a ? quarter_m : quarter_n;
          const bool by_terms = of_a ? a_by_terms : b_by_terms;
          if (!of_a) square -= TO_U32(TILE_A_SQUARES);
          const u32 place =
              (of_a ? 0u : TO_U32(BLOCK_M)) + SQUARE_ROW(square, by_terms, quarter) / 4u;
          const u32 part = SQUARE_PART(square, by_terms, quarter);
          UNROLL for (u32 j = 0u; j < 4u; ++j)
              TILE((place + j * quarter) * TO_U32(TILE_STRIDE) + part) = HELD(4u * i + j);
        }
      }
    }
    TILE_BARRIER();
  }
  const bool adds = !over_rows || !is_held ? (features & GROUPED_ADDEND) != 0u : false;
  // One by one; the sums stay in registers, where nothing can be looked up.
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
    const u32 row = GROUPED_ROW(vector), column = GROUPED_COLUMN(vector);
    if (row < m && column < n) {
      const u32 count = min(n - column, 4u);
      // Integers that are the result are words of 32 bits like floats.
      const bool as_words = BLOCKS == MATMUL_BLOCKS_WHOLE && (features & GROUPED_WHOLE) != 0u;
      if (BLOCKS == MATMUL_BLOCKS_SCALED) sum = FLOATS_OF_WORDS(words);
      if (BLOCKS == MATMUL_BLOCKS_WHOLE) sum = as_words ? FLOATS_OF_WORDS(words) : TO_FLOAT4(words);
      if (BLOCKS != MATMUL_BLOCKS_SCALED && k != 0u) {
        if (A_TYPE >= TO_U32(DTYPE_I8)) GROUPED_SCALE(sum, row, column, 0u)
      }
      if (adds) {
        const u32 step = ARGS(addend).column;
        const u32 at = ARGS(addend).offset + group * ARGS(addend).group + row * ARGS(addend).row +
                       column * step;
        const FLOAT4 added = LOAD_ADDEND_STEPS(at, step, count, ARGS(addend_type));
        if (as_words) {
          // Those of rows of no group are added's. Compilers would fold a choice of it into the sum
          // of floats, where words that are NaN as floats lose a bit.
          sum = FLOATS_OF_WORDS(words + WORDS_OF_FLOATS(added));
        } else {
          sum += added;
        }
      }
      const u32 step = ARGS(result).column;
      const u32 at =
          ARGS(result).offset + group * ARGS(result).group + row * ARGS(result).row + column * step;
      if (step == 1u && count == 4u && at % 4u == 0u) {
        STORE_RESULT_VECTOR(sum, at, ARGS(result_type));
      } else {
        STORE_RESULT_STEPS(sum, at, step, count, ARGS(result_type));
      }
    }
  }
}
