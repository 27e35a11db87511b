// SPDX-License-Identifier: Apache-2.0
// The body of matmul/grouped/product, in the text that OpenCL C and GLSL share. The language brings
// LIST(i), the work list; TABLE(i), words of its table of blocks; HELD(i), vectors in registers;
// TILE(i), vectors in local memory; PRODUCT(i), sums; ADD_PRODUCTS(a, b), the products of a step
// from where the item's rows and columns begin; and how elements are read and written. Tiles lie as
// those of matmul_core/tile.
#include "operations/matmul_core/core/fetch.h"

// Where a square lies: item by item along the axis that memory runs along.
#define SQUARE_ROW(square, by_terms, squares) \
  (((by_terms) ? (square) / TO_U32(TILE_PARTS) : (square) % (squares)) * 4u)
#define SQUARE_PART(square, by_terms, squares) \
  ((by_terms) ? (square) % TO_U32(TILE_PARTS) : (square) / (squares))

const u32 lane = LOCAL_ID_X, lane_n = lane % TO_U32(LANES_N), lane_m = lane / TO_U32(LANES_N);
const u32 features = ARGS(features), n = ARGS(n), items = LIST(0u).x;
const bool over_terms = RAGGED == GROUPED_TERMS, over_rows = RAGGED == GROUPED_ROWS;
const bool over_blocks = RAGGED == GROUPED_BLOCKS;
const u32 quarter_m = TO_U32(BLOCK_M) / 4u, quarter_n = TO_U32(BLOCK_N) / 4u;
const u32 tiles_each = over_rows ? 1u : (ARGS(m) + TO_U32(BLOCK_M) - 1u) / TO_U32(BLOCK_M);
const u32 tiles_m = items * tiles_each, tiles_n = (n + TO_U32(BLOCK_N) - 1u) / TO_U32(BLOCK_N);
for (u32 unit = GROUP_ID_X; unit < tiles_m * tiles_n; unit += GROUP_COUNT_X) {
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
  // A round fetches step `step` while the products of the one before are taken.
  for (u32 step = 0u; steps != 0u && step <= steps; ++step) {
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
    UNROLL for (u32 i = 0u; i < TO_U32(ROWS * COLUMNS / 4); ++i) {
      if (i == vector)
        sum = MAKE_FLOAT4(PRODUCT(4u * i), PRODUCT(4u * i + 1u), PRODUCT(4u * i + 2u),
                          PRODUCT(4u * i + 3u));
    }
    const u32 place = lane_m + TO_U32(LANES_M) * (vector / TO_U32(COLUMNS / 4));
    const u32 row = row0 + place % quarter_m * 4u + place / quarter_m;
    const u32 column = column0 + 4u * (lane_n + TO_U32(LANES_N) * (vector % TO_U32(COLUMNS / 4)));
    if (row < m && column < n) {
      const u32 count = min(n - column, 4u);
      if (adds) {
        const u32 step = ARGS(addend).column;
        const u32 at = ARGS(addend).offset + group * ARGS(addend).group + row * ARGS(addend).row +
                       column * step;
        sum += LOAD_ADDEND_STEPS(at, step, count, ARGS(addend_type));
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
