// SPDX-License-Identifier: Apache-2.0
// What attention/tile/backward_keys and attention/tile/backward_queries share: products of tiles,
// and what a (row, key) pair adds to the gradients. The including shader has defined BLOCK_OWN, the
// rows of its group, BLOCK_STEP, the rows of the other kind that it takes at a time, and
// SCRATCH_BINDING, after which follow the policies (POLICY=1), then the arguments.
//
//              BLOCK_STEP rows of the other kind                 features
//            +----------------------------------+         +----------------------+
//  BLOCK_OWN | two products, added up by        | weights | sums of weighted     |
//  rows      | SLICE_D features: q.k and do.v   | to      | rows, added up by    |
//            | weights, gradients of logits     | shared  | SLICE_STEP rows      |
//            +----------------------------------+  memory +----------------------+
//  Item (lane_own, lane_step): rows lane_own + ATTN_LANES_OWN r of both, columns
//  4 (lane_step + ATTN_LANES_STEP g) + 0..3 of both.
#ifndef TESSERA_ATTENTION_TILE_BACKWARD_GLSL
#define TESSERA_ATTENTION_TILE_BACKWARD_GLSL
#include "lib/tiles/products.glsl"
#include "operations/attention_core/tile/backward.def"
#include "operations/attention_core/tile/backward.h"
#include "attention/core/gradients.glsl"

layout(std430, binding = 0) readonly buffer QueryVectors { scalar4 q4[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { scalar4 k4[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { scalar4 v4[]; };
layout(std430, binding = 3) readonly buffer OutputGradientVectors { scalar4 g4[]; };

shared vec4 memory[ATTN_TILE_BACKWARD_VECTORS];
// seen[c]: a row of this group sees row c of the step; seen[SOME_HIDDEN]: some pair is hidden.
#define SOME_HIDDEN BLOCK_STEP
shared uint seen[BLOCK_STEP + 1u];

uint lane_own, lane_step;
float weight[ITEM_ROWS * ATTN_ITEM_STEPS];    // q.k, then p with dropout
float gradient[ITEM_ROWS * ATTN_ITEM_STEPS];  // do.v, then du

// Four features of a row; zero where there is none.
#define LOAD_ROWS(name, elements, vectors, base, stride, features, end) \
  vec4 name(int row, uint feature) {                                    \
    vec4 x = vec4(0.0);                                                 \
    if (row >= end) return x;                                           \
    const uint at = base + uint(row) * stride;                          \
    TILE_LOAD_FOUR(x, elements, vectors, at, feature, features)         \
    return x;                                                           \
  }
LOAD_ROWS(load_query, q, q4, q_base, args.core.q_stride_row, HEAD_DIM, end_row)
LOAD_ROWS(load_key, k, k4, k_base, args.core.k_stride_row, HEAD_DIM, end_key)
LOAD_ROWS(load_value, v, v4, v_base, args.core.v_stride_row, VALUE_DIM, end_key)
LOAD_ROWS(load_gradient, g, g4, g_base, args.gradient.do_stride_row, VALUE_DIM, end_row)

// stage: this item's share of a slice of both kinds of rows, to shared memory, by way of registers
// so that all loads are on their way at once. Rows 4 i to 4 i + 3 of the step are columns of one
// item. They go to rows i, i + BLOCK_STEP / 4, ... of the tile: so lanes read neighbouring rows.
//
// name(...): product[r][c] = own row r . row c of the step. Begins after a barrier, ends with one.
#define MULTIPLY(name, stage, add, product, load_own, load_step, slices)                                 \
  void stage(int own_first, int step_first, uint slice) {                                                \
    const uint copy_row = item / ATTN_SLICE_VECTORS, vector = item % ATTN_SLICE_VECTORS;                 \
    const uint feature = slice * SLICE_D + vector * 4u;                                                  \
    vec4 copies[ATTN_OWN_COPIES + ATTN_STEP_COPIES];                                                     \
    [[unroll]] for (uint n = 0u; n < ATTN_OWN_COPIES; ++n)                                               \
      copies[n] = load_own(own_first + int(copy_row + n * ATTN_COPY_ROWS), feature);                     \
    [[unroll]] for (uint n = 0u; n < ATTN_STEP_COPIES; ++n)                                              \
      copies[ATTN_OWN_COPIES + n] = load_step(step_first + int(copy_row + n * ATTN_COPY_ROWS), feature); \
    [[unroll]] for (uint n = 0u; n < ATTN_OWN_COPIES; ++n) {                                             \
      const uint row = copy_row + n * ATTN_COPY_ROWS;                                                    \
      if (row < BLOCK_OWN) memory[row * ATTN_SLICE_STRIDE + vector] = copies[n];                         \
    }                                                                                                    \
    [[unroll]] for (uint n = 0u; n < ATTN_STEP_COPIES; ++n) {                                            \
      const uint row = copy_row + n * ATTN_COPY_ROWS, slot = row % 4u * (BLOCK_STEP / 4u) + row / 4u;    \
      if (row < BLOCK_STEP)                                                                              \
        memory[ATTN_OWN_AREA + slot * ATTN_SLICE_STRIDE + vector] = copies[ATTN_OWN_COPIES + n];         \
    }                                                                                                    \
  }                                                                                                      \
  TILE_ADD_DOTS(add, memory, product, ITEM_ROWS, ATTN_ITEM_STEPS, ATTN_SLICE_VECTORS, ATTN_LANES_OWN,    \
                ATTN_SLICE_STRIDE, ATTN_LANES_STEP, ATTN_SLICE_STRIDE, BLOCK_STEP / 4u)                  \
  void name(int own_first, int step_first) {                                                             \
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_STEPS; ++i) product[i] = 0.0;                 \
    for (uint slice = 0u; slice < slices; ++slice) {                                                     \
      stage(own_first, step_first, slice);                                                               \
      barrier();                                                                                         \
      add(lane_own * ATTN_SLICE_STRIDE, ATTN_OWN_AREA + lane_step * ATTN_SLICE_STRIDE);                  \
      barrier();                                                                                         \
    }                                                                                                    \
  }

#define STORE_WEIGHTS(name, weights)                                                 \
  void name() {                                                                      \
    const uint to = lane_own * ATTN_WEIGHT_STRIDE + lane_step;                       \
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {                               \
      [[unroll]] for (uint h = 0u; h < ATTN_ITEM_STEPS / 4u; ++h) {                  \
        const uint w = r * ATTN_ITEM_STEPS + h * 4u;                                 \
        memory[to + ATTN_LANES_OWN * r * ATTN_WEIGHT_STRIDE + ATTN_LANES_STEP * h] = \
            vec4(weights[w], weights[w + 1u], weights[w + 2u], weights[w + 3u]);     \
      }                                                                              \
    }                                                                                \
  }

// name(...): sum[r] += weight[r][c] row c of the step, for the weights in shared memory. A row that
// nobody in the group saw counts as zeros, for it may hold NaN; one that some saw reaches those that
// give it a weight. 16 ITEM_ROWS VECTORS multiply-adds for ITEM_ROWS + 4 VECTORS reads. Begins and
// ends with a barrier.
#define ADD_ROWS(name, sum, VECTORS, STRIDE, load, end)                                                \
  TILE_ADD_ROWS(name##_slice, tile_add_product, memory, sum, ITEM_ROWS, VECTORS, SLICE_STEP,           \
                ATTN_LANES_OWN, ATTN_WEIGHT_STRIDE, ATTN_LANES_STEP, STRIDE)                           \
  TILE_ADD_ROWS(name##_seen_slice, tile_add_seen_product, memory, sum, ITEM_ROWS, VECTORS,             \
                SLICE_STEP, ATTN_LANES_OWN, ATTN_WEIGHT_STRIDE, ATTN_LANES_STEP, STRIDE)               \
  void name(int step_first) {                                                                          \
    uint weight_at = lane_own * ATTN_WEIGHT_STRIDE;                                                    \
    const uint tile = ATTN_WEIGHT_AREA + lane_step;                                                    \
    const uint slices =                                                                                \
        min((uint(end - step_first) + SLICE_STEP - 1u) / SLICE_STEP, BLOCK_STEP / SLICE_STEP);         \
    barrier();                                                                                         \
    const bool every = seen[SOME_HIDDEN] == 0u;                                                        \
    for (uint slice = 0u; slice < slices; ++slice, weight_at += SLICE_STEP / 4u) {                     \
      vec4 copies[ATTN_ROW_COPIES * VECTORS];                                                          \
      [[unroll]] for (uint n = 0u; n < ATTN_ROW_COPIES * VECTORS; ++n) {                               \
        const uint row = lane_own + n / VECTORS * ATTN_LANES_OWN, column = slice * SLICE_STEP + row;   \
        copies[n] = vec4(0.0);                                                                         \
        if (row < SLICE_STEP && seen[column] != 0u)                                                    \
          copies[n] =                                                                                  \
              load(step_first + int(column), (lane_step + n % VECTORS * ATTN_LANES_STEP) * 4u);        \
      }                                                                                                \
      [[unroll]] for (uint n = 0u; n < ATTN_ROW_COPIES * VECTORS; ++n) {                               \
        const uint row = lane_own + n / VECTORS * ATTN_LANES_OWN;                                      \
        if (row < SLICE_STEP) memory[tile + row * STRIDE + n % VECTORS * ATTN_LANES_STEP] = copies[n]; \
      }                                                                                                \
      barrier();                                                                                       \
      if (every) {                                                                                     \
        name##_slice(weight_at, tile);                                                                 \
      } else {                                                                                         \
        name##_seen_slice(weight_at, tile);                                                            \
      }                                                                                                \
      barrier();                                                                                       \
    }                                                                                                  \
  }

// name(to, ...): the group's rows of a gradient, factor times the sums.
#define STORE_ROWS(name, elements, vectors, sum, VECTORS, FEATURES)                    \
  void name(uint to, uint stride, float factor, int first, int end) {                  \
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {                                 \
      const int row = first + int(lane_own + ATTN_LANES_OWN * r);                      \
      if (row >= end) continue;                                                        \
      const uint at = to + uint(row) * stride;                                         \
      [[unroll]] for (uint i = 0u; i < VECTORS; ++i) {                                 \
        const uint column = (lane_step + ATTN_LANES_STEP * i) * 4u;                    \
        const vec4 x = sum[r * VECTORS + i] * factor;                                  \
        if (ALIGNED != 0u) {                                                           \
          if (column < FEATURES) vectors[(at + column) / 4u] = store_scalar4(x);       \
        } else {                                                                       \
          [[unroll]] for (uint f = 0u; f < 4u; ++f)                                    \
            if (column + f < FEATURES) elements[at + column + f] = store_scalar(x[f]); \
        }                                                                              \
      }                                                                                \
    }                                                                                  \
  }

// Before the loops over pairs. The text of the policies is long and shall not stand once per pair:
// with them the loops stay loops, over copies, so that the products themselves stay in registers.
// Unrolled, PoCL took 5 times as long to compile it.
#if POLICY
#define EACH_PAIR [[dont_unroll]]
#else
#define EACH_PAIR [[unroll]]
#endif
#define PAIRS (ITEM_ROWS * ATTN_ITEM_STEPS)

void place_item() {
  item = gl_LocalInvocationIndex;
  lane_own = item / ATTN_LANES_STEP;
  lane_step = item % ATTN_LANES_STEP;
  batch = gl_WorkGroupID.z;
}

#endif  // TESSERA_ATTENTION_TILE_BACKWARD_GLSL
