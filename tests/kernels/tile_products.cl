// SPDX-License-Identifier: Apache-2.0
// lib/tiles/products.clh alone: product = a b^T, then sums = weights rows, where the weights are that
// product with 0 in the columns that `hidden` names; and maxima and sums of its rows. One group of 4 x 4
// items.
#include "lib/tiles/products.clh"

#define ROWS 2
#define COLUMNS 4
#define LANES 4
#define OWN (ROWS * LANES)
#define STEP (COLUMNS * LANES)
#define SLICE_VECTORS 2
#define SLICE_STRIDE (SLICE_VECTORS | 1)
#define WEIGHT_STRIDE ((STEP / 4) | 1)

TILE_ADD_DOTS(add_dots, ROWS, COLUMNS, SLICE_VECTORS, LANES, SLICE_STRIDE, LANES, SLICE_STRIDE, STEP / 4)
TILE_ADD_ROWS(add_rows, add_product, ROWS, 1, STEP, LANES, WEIGHT_STRIDE, LANES, LANES)
TILE_ADD_ROWS(add_seen_rows, add_seen_product, ROWS, 1, STEP, LANES, WEIGHT_STRIDE, LANES, LANES)
TILE_REDUCE_ROWS(reduce_rows, ROWS, LANES, LANES, WEIGHT_STRIDE)

INLINE float4 four(const global scalar* row, uint feature, uint features) {
  float4 x = (float4)(0.0f);
  LOAD_FOUR(x, row, feature, features)
  return x;
}

KERNEL void tile_products(const global scalar* a, const global scalar* b, const global scalar* c,
                          global float* product_out, global float* sum_out, global float* rows_out,
                          const uint hidden) {
  local float4 memory[OWN * WEIGHT_STRIDE + STEP * LANES];
  local float4* own = memory;
  local float4* step = memory + OWN * SLICE_STRIDE;
  const uint item = get_local_id(0), lane_own = item / LANES, lane_step = item % LANES;

  float product[ROWS * COLUMNS];
  for (uint i = 0; i < ROWS * COLUMNS; ++i) product[i] = 0.0f;
  for (uint first = 0; first < FEATURES; first += 4 * SLICE_VECTORS) {
    for (uint n = item; n < OWN * SLICE_VECTORS; n += WG_X) {
      const uint row = n / SLICE_VECTORS, vector = n % SLICE_VECTORS;
      own[row * SLICE_STRIDE + vector] = four(a + row * FEATURES, first + 4 * vector, FEATURES);
    }
    for (uint n = item; n < STEP * SLICE_VECTORS; n += WG_X) {
      const uint row = n / SLICE_VECTORS, vector = n % SLICE_VECTORS;
      const uint slot = row % 4 * (STEP / 4) + row / 4;
      step[slot * SLICE_STRIDE + vector] = four(b + row * FEATURES, first + 4 * vector, FEATURES);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_dots(product, own + lane_own * SLICE_STRIDE, step + lane_step * SLICE_STRIDE);
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  // The maximum and the sum of each row of the product.
  for (uint i = 0; i < 2; ++i) {
    float statistic[ROWS];
    for (uint r = 0; r < ROWS; ++r) {
      statistic[r] = product[r * COLUMNS];
      for (uint c = 1; c < COLUMNS; ++c) {
        const float x = product[r * COLUMNS + c];
        statistic[r] = i == 0 ? fmax(statistic[r], x) : statistic[r] + x;
      }
    }
    reduce_rows(statistic, i == 1, -1e30f, memory, lane_own, lane_step);
    for (uint r = 0; r < ROWS; ++r) rows_out[2 * (lane_own + LANES * r) + i] = statistic[r];
  }

  local float4* weights = memory;
  local float4* rows = memory + OWN * WEIGHT_STRIDE;
  for (uint r = 0; r < ROWS; ++r) {
    float weight[COLUMNS];
    for (uint i = 0; i < COLUMNS; ++i) {
      const uint column = 4 * lane_step + i;
      product_out[(lane_own + LANES * r) * STEP + column] = product[r * COLUMNS + i];
      weight[i] = (hidden >> column & 1) != 0 ? 0.0f : product[r * COLUMNS + i];
    }
    weights[(lane_own + LANES * r) * WEIGHT_STRIDE + lane_step] = vload4(0, weight);
  }
  for (uint n = item; n < STEP * LANES; n += WG_X)
    rows[n] = four(c + n / LANES * COLUMNS_OUT, n % LANES * 4, COLUMNS_OUT);
  barrier(CLK_LOCAL_MEM_FENCE);
  float4 sum[ROWS];
  for (uint r = 0; r < ROWS; ++r) sum[r] = (float4)(0.0f);
  if (hidden == 0)
    add_rows(sum, weights + lane_own * WEIGHT_STRIDE, rows + lane_step);
  else
    add_seen_rows(sum, weights + lane_own * WEIGHT_STRIDE, rows + lane_step);
  for (uint r = 0; r < ROWS; ++r)
    vstore4(sum[r], (lane_own + LANES * r) * LANES + lane_step, sum_out);
}
