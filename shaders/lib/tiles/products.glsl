// SPDX-License-Identifier: Apache-2.0
// Products of tiles of floats in shared memory, which every device can do. A work-group is
// OWN_LANES x STEP_LANES items; an item has rows lane_own + OWN_LANES r, and vectors of four columns
// lane_step + STEP_LANES g. Strides count vectors; odd ones put neighbouring rows in different banks.
#ifndef TESSERA_LIB_TILES_PRODUCTS_GLSL
#define TESSERA_LIB_TILES_PRODUCTS_GLSL
#include "lib/tiles/features.glsl"

// name(own, step): product[ROWS][COLUMNS] += own row r . step row c, over one slice of VECTORS vectors.
// `own` and `step` are where the item's first rows begin. Step rows 4 i to 4 i + 3, which are columns of
// one item, lie at i, i + QUARTER, ...: so lanes read neighbouring rows. 4 ROWS COLUMNS multiply-adds for
// ROWS + COLUMNS reads.
// `memory`, vec4, and `product` are arrays that the shader declares.
#define TILE_ADD_DOTS(name, memory, product, ROWS, COLUMNS, VECTORS, OWN_LANES, OWN_STRIDE, STEP_LANES, STEP_STRIDE, QUARTER) \
  void name(uint own, uint step) {                                                                                            \
    for (uint d = 0u; d < (VECTORS); ++d) {                                                                                   \
      vec4 part[COLUMNS];                                                                                                     \
      [[unroll]] for (uint c = 0u; c < (COLUMNS); ++c)                                                                        \
        part[c] = memory[step + (c % 4u * (QUARTER) + c / 4u * (STEP_LANES)) * (STEP_STRIDE) + d];                            \
      [[unroll]] for (uint r = 0u; r < (ROWS); ++r) {                                                                         \
        const vec4 own_part = memory[own + (OWN_LANES) * r * (OWN_STRIDE) + d];                                               \
        [[unroll]] for (uint c = 0u; c < (COLUMNS); ++c)                                                                      \
          product[r * (COLUMNS) + c] = dot_add(own_part, part[c], product[r * (COLUMNS) + c]);                                \
      }                                                                                                                       \
    }                                                                                                                         \
  }

// name(weight_at, tile): sum[ROWS][VECTORS] += weight[r][j] times row j of the tile, for the SLICE rows of it;
// `add` is add_product or add_seen_product. 16 ROWS VECTORS multiply-adds for ROWS + 4 VECTORS reads.
// `sum` is an array of vec4.
#define TILE_ADD_ROWS(name, add, memory, sum, ROWS, VECTORS, SLICE, OWN_LANES, WEIGHTS, STEP_LANES, STRIDE) \
  void name(uint weight_at, uint tile) {                                                                    \
    for (uint j = 0u; j < (SLICE) / 4u; ++j) {                                                              \
      const uint row = tile + j * 4u * (STRIDE);                                                            \
      vec4 part[ROWS];                                                                                      \
      [[unroll]] for (uint r = 0u; r < (ROWS); ++r)                                                         \
        part[r] = memory[weight_at + (OWN_LANES) * r * (WEIGHTS) + j];                                      \
      [[unroll]] for (uint i = 0u; i < (VECTORS); ++i) {                                                    \
        const vec4 row0 = memory[row + (STEP_LANES) * i];                                                   \
        const vec4 row1 = memory[row + (STEP_LANES) * i + (STRIDE)];                                        \
        const vec4 row2 = memory[row + (STEP_LANES) * i + 2u * (STRIDE)];                                   \
        const vec4 row3 = memory[row + (STEP_LANES) * i + 3u * (STRIDE)];                                   \
        [[unroll]] for (uint r = 0u; r < (ROWS); ++r) {                                                     \
          vec4 total = sum[r * (VECTORS) + i];                                                              \
          total = add(total, part[r].x, row0);                                                              \
          total = add(total, part[r].y, row1);                                                              \
          total = add(total, part[r].z, row2);                                                              \
          sum[r * (VECTORS) + i] = add(total, part[r].w, row3);                                             \
        }                                                                                                   \
      }                                                                                                     \
    }                                                                                                       \
  }

// name(...): maximum, at least `least`, or sum of each row's statistic over the STEP_LANES items that
// share the row, by way of rows of `memory` from `at` on. Unrolled, the loop over them would hold all of
// it in registers at once.
#define TILE_REDUCE_ROWS(name, memory, statistic, ROWS, OWN_LANES, STEP_LANES, STRIDE)                      \
  void name(bool is_sum, float least, uint at, uint lane_own, uint lane_step) {                             \
    [[unroll]] for (uint r = 0u; r < (ROWS); ++r)                                                           \
      memory[at + (lane_own + (OWN_LANES) * r) * (STRIDE) + lane_step / 4u][lane_step % 4u] = statistic[r]; \
    barrier();                                                                                              \
    [[unroll]] for (uint r = 0u; r < (ROWS); ++r) statistic[r] = is_sum ? 0.0 : least;                      \
    [[dont_unroll]] for (uint i = 0u; i < (STEP_LANES) / 4u; ++i) {                                         \
      [[unroll]] for (uint r = 0u; r < (ROWS); ++r) {                                                       \
        const vec4 x = memory[at + (lane_own + (OWN_LANES) * r) * (STRIDE) + i];                            \
        statistic[r] = is_sum ? statistic[r] + ((x.x + x.y) + (x.z + x.w))                                  \
                              : max(statistic[r], max(max(x.x, x.y), max(x.z, x.w)));                       \
      }                                                                                                     \
    }                                                                                                       \
    barrier();                                                                                              \
  }
// The same by shuffles, where a sub-group holds all of these items.
#define TILE_SHUFFLE_ROWS(name, statistic, ROWS, STEP_LANES)                     \
  void name(bool is_sum) {                                                       \
    [[unroll]] for (uint lanes = 1u; lanes < (STEP_LANES); lanes *= 2u) {        \
      [[unroll]] for (uint r = 0u; r < (ROWS); ++r) {                            \
        const float other = subgroupShuffleXor(statistic[r], lanes);             \
        statistic[r] = is_sum ? statistic[r] + other : max(statistic[r], other); \
      }                                                                          \
    }                                                                            \
  }

#endif  // TESSERA_LIB_TILES_PRODUCTS_GLSL
