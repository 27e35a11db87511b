// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/tile/backward_keys and tile_backward_queries, from WG_X, the names of
// backward.def, and BLOCK_OWN and BLOCK_STEP, which each kernel says of BLOCK_Q and BLOCK_K.
// OpenCL C, GLSL and the host read this same text: a host function has those names as unsigned
// locals and evaluates ATTN_TILE_BACKWARD_VALID, ATTN_TILE_BACKWARD_LOCAL_BYTES and
// ATTN_TILE_BACKWARD_REGISTERS.
//
// A vector is four floats, the unit of local memory. Rows that lanes stride over are an odd number
// of vectors long, so that eight neighbouring rows start in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H

#define ATTN_TILE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_TILE_MAX(a, b) ((a) > (b) ? (a) : (b))

// The work-group is ATTN_LANES_OWN x ATTN_LANES_STEP items. Item (lane_own, lane_step) has the
// group's rows lane_own + ATTN_LANES_OWN * r, and of rows of the step and of features those of
// vectors lane_step + ATTN_LANES_STEP * g.
#define ATTN_LANES_OWN (BLOCK_OWN / ITEM_ROWS)
#define ATTN_LANES_STEP (WG_X / ATTN_LANES_OWN)
#define ATTN_ITEM_STEPS (BLOCK_STEP / ATTN_LANES_STEP)
#define ATTN_ITEM_HEADS ATTN_TILE_CEIL_DIV(HEAD_DIM, 4u * ATTN_LANES_STEP)    // vectors
#define ATTN_ITEM_VALUES ATTN_TILE_CEIL_DIV(VALUE_DIM, 4u * ATTN_LANES_STEP)  // vectors

#define ATTN_HEAD_SLICES ATTN_TILE_CEIL_DIV(HEAD_DIM, SLICE_D)
#define ATTN_VALUE_SLICES ATTN_TILE_CEIL_DIV(VALUE_DIM, SLICE_D)
#define ATTN_SLICE_VECTORS (SLICE_D / 4u)
#define ATTN_SLICE_STRIDE (ATTN_SLICE_VECTORS | 1u)
#define ATTN_WEIGHT_STRIDE ((BLOCK_STEP / 4u) | 1u)
#define ATTN_HEAD_STRIDE (ATTN_ITEM_HEADS * ATTN_LANES_STEP)
#define ATTN_VALUE_STRIDE (ATTN_ITEM_VALUES * ATTN_LANES_STEP)

// Local memory: {slices of the group's rows; of the step's} or {weights; rows of the step}, then
// which rows of the step were seen, and a range.
#define ATTN_OWN_AREA (BLOCK_OWN * ATTN_SLICE_STRIDE)
#define ATTN_STEP_AREA (BLOCK_STEP * ATTN_SLICE_STRIDE)
#define ATTN_WEIGHT_AREA (BLOCK_OWN * ATTN_WEIGHT_STRIDE)
#define ATTN_ROW_AREA (SLICE_STEP * ATTN_TILE_MAX(ATTN_HEAD_STRIDE, ATTN_VALUE_STRIDE))
#define ATTN_TILE_BACKWARD_VECTORS \
  ATTN_TILE_MAX(ATTN_OWN_AREA + ATTN_STEP_AREA, ATTN_WEIGHT_AREA + ATTN_ROW_AREA)
#define ATTN_TILE_BACKWARD_LOCAL_BYTES (16u * ATTN_TILE_BACKWARD_VECTORS + 4u * BLOCK_STEP + 8u)

// Vectors that one item copies per slice of features, ATTN_COPY_ROWS rows apart; and rows that it
// copies per slice of the step, ATTN_LANES_OWN apart.
#define ATTN_COPY_ROWS (WG_X / ATTN_SLICE_VECTORS)
#define ATTN_OWN_COPIES ATTN_TILE_CEIL_DIV(BLOCK_OWN, ATTN_COPY_ROWS)
#define ATTN_STEP_COPIES ATTN_TILE_CEIL_DIV(BLOCK_STEP, ATTN_COPY_ROWS)
#define ATTN_ROW_COPIES ATTN_TILE_CEIL_DIV(SLICE_STEP, ATTN_LANES_OWN)

// 32-bit registers that one item of the keys kernel needs, about: two sums, weights and gradients,
// the larger of the two kinds of product, addresses.
#define ATTN_TILE_BACKWARD_REGISTERS                                                          \
  (4u * ITEM_ROWS * (ATTN_ITEM_HEADS + ATTN_ITEM_VALUES) + 2u * ITEM_ROWS * ATTN_ITEM_STEPS + \
   ATTN_TILE_MAX(4u * ATTN_ITEM_STEPS + 8u, 4u * ITEM_ROWS + 16u) + 40u)

// What the kernels take for granted. Evaluate ATTN_TILE_BACKWARD_DIVISORS first: the rest divides
// by them.
#define ATTN_TILE_BACKWARD_DIVISORS                                                       \
  (ITEM_ROWS > 0u && BLOCK_OWN >= ITEM_ROWS && WG_X >= ATTN_LANES_OWN && SLICE_D >= 4u && \
   SLICE_STEP >= 4u && WG_X >= ATTN_SLICE_VECTORS)
#define ATTN_TILE_BACKWARD_VALID                                                                \
  (ATTN_TILE_BACKWARD_DIVISORS && BLOCK_OWN % ITEM_ROWS == 0u && WG_X % ATTN_LANES_OWN == 0u && \
   BLOCK_STEP > 0u && BLOCK_STEP % (4u * ATTN_LANES_STEP) == 0u && ATTN_ITEM_STEPS <= 32u &&    \
   BLOCK_STEP % SLICE_STEP == 0u && SLICE_STEP % 4u == 0u && SLICE_D % 4u == 0u &&              \
   WG_X % ATTN_SLICE_VECTORS == 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H
