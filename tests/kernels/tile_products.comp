// SPDX-License-Identifier: Apache-2.0
// lib/tiles/products.glsl alone, as tile_products.cl; with SUBGROUP=1 rows are reduced by shuffles.
#version 450
#extension GL_GOOGLE_include_directive : require
#if SUBGROUP
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "lib/tiles/products.glsl"
#define ALIGNED 0u
const uint ROWS = 2u, COLUMNS = 4u, LANES = 4u, OWN = ROWS * LANES, STEP = COLUMNS * LANES;
const uint SLICE_VECTORS = 2u, SLICE_STRIDE = SLICE_VECTORS | 1u, WEIGHT_STRIDE = (STEP / 4u) | 1u;

layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 0) readonly buffer AVectors { vec4 a4[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 1) readonly buffer BVectors { vec4 b4[]; };
layout(std430, binding = 2) readonly buffer C { float c[]; };
layout(std430, binding = 2) readonly buffer CVectors { vec4 c4[]; };
layout(std430, binding = 3) writeonly buffer Product { float product_out[]; };
layout(std430, binding = 4) writeonly buffer Sums { float sum_out[]; };
layout(std430, binding = 5) writeonly buffer Rows { float rows_out[]; };
layout(push_constant) uniform Push { uint hidden; };

shared vec4 memory[OWN * WEIGHT_STRIDE + STEP * LANES];
float product[ROWS * COLUMNS];
vec4 sum[ROWS];
float statistic[ROWS];
TILE_ADD_DOTS(add_dots, memory, product, ROWS, COLUMNS, SLICE_VECTORS, LANES, SLICE_STRIDE, LANES, SLICE_STRIDE,
              STEP / 4u)
TILE_ADD_ROWS(add_rows, add_product, memory, sum, ROWS, 1u, STEP, LANES, WEIGHT_STRIDE, LANES, LANES)
TILE_ADD_ROWS(add_seen_rows, add_seen_product, memory, sum, ROWS, 1u, STEP, LANES, WEIGHT_STRIDE, LANES, LANES)
#if SUBGROUP
TILE_SHUFFLE_ROWS(reduce_rows, statistic, ROWS, LANES)
#define REDUCE(is_sum) reduce_rows(is_sum)
#else
TILE_REDUCE_ROWS(reduce_rows, memory, statistic, ROWS, LANES, LANES, WEIGHT_STRIDE)
#define REDUCE(is_sum) reduce_rows(is_sum, -1e30, 0u, lane_own, lane_step)
#endif

#define FOUR(name, elements, vectors, features)        \
  vec4 name(uint at, uint feature) {                   \
    vec4 x = vec4(0.0);                                \
    LOAD_FOUR(x, elements, vectors, at, feature, features) \
    return x;                                          \
  }
FOUR(four_a, a, a4, FEATURES)
FOUR(four_b, b, b4, FEATURES)
FOUR(four_c, c, c4, COLUMNS_OUT)

void main() {
  const uint item = gl_LocalInvocationID.x, lane_own = item / LANES, lane_step = item % LANES;
  const uint step_at = OWN * SLICE_STRIDE, rows_at = OWN * WEIGHT_STRIDE;
  for (uint i = 0u; i < ROWS * COLUMNS; ++i) product[i] = 0.0;
  for (uint first = 0u; first < FEATURES; first += 4u * SLICE_VECTORS) {
    for (uint n = item; n < OWN * SLICE_VECTORS; n += WG_X) {
      const uint row = n / SLICE_VECTORS, vector = n % SLICE_VECTORS;
      memory[row * SLICE_STRIDE + vector] = four_a(row * FEATURES, first + 4u * vector);
    }
    for (uint n = item; n < STEP * SLICE_VECTORS; n += WG_X) {
      const uint row = n / SLICE_VECTORS, vector = n % SLICE_VECTORS;
      const uint slot = row % 4u * (STEP / 4u) + row / 4u;
      memory[step_at + slot * SLICE_STRIDE + vector] = four_b(row * FEATURES, first + 4u * vector);
    }
    barrier();
    add_dots(lane_own * SLICE_STRIDE, step_at + lane_step * SLICE_STRIDE);
    barrier();
  }
  // The maximum and the sum of each row of the product.
  for (uint i = 0u; i < 2u; ++i) {
    for (uint r = 0u; r < ROWS; ++r) {
      statistic[r] = product[r * COLUMNS];
      for (uint c = 1u; c < COLUMNS; ++c) {
        const float x = product[r * COLUMNS + c];
        statistic[r] = i == 0u ? max(statistic[r], x) : statistic[r] + x;
      }
    }
    REDUCE(i == 1u);
    for (uint r = 0u; r < ROWS; ++r) rows_out[2u * (lane_own + LANES * r) + i] = statistic[r];
  }
  for (uint r = 0u; r < ROWS; ++r) {
    vec4 weight;
    for (uint i = 0u; i < COLUMNS; ++i) {
      const uint column = 4u * lane_step + i;
      product_out[(lane_own + LANES * r) * STEP + column] = product[r * COLUMNS + i];
      weight[i] = (hidden >> column & 1u) != 0u ? 0.0 : product[r * COLUMNS + i];
    }
    memory[(lane_own + LANES * r) * WEIGHT_STRIDE + lane_step] = weight;
  }
  for (uint n = item; n < STEP * LANES; n += WG_X)
    memory[rows_at + n] = four_c(n / LANES * COLUMNS_OUT, n % LANES * 4u);
  barrier();
  for (uint r = 0u; r < ROWS; ++r) sum[r] = vec4(0.0);
  if (hidden == 0u)
    add_rows(lane_own * WEIGHT_STRIDE, rows_at + lane_step);
  else
    add_seen_rows(lane_own * WEIGHT_STRIDE, rows_at + lane_step);
  for (uint r = 0u; r < ROWS; ++r)
    for (uint i = 0u; i < 4u; ++i)
      sum_out[((lane_own + LANES * r) * LANES + lane_step) * 4u + i] = sum[r][i];
}
