// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/tile/backward_keys and tile_backward_queries, from WG_X, the names of
// backward.def, and BLOCK_OWN and BLOCK_STEP, which each kernel says of BLOCK_Q and BLOCK_K.
// OpenCL C, GLSL and the host read this same text: a host function has those names as unsigned
// locals and evaluates TILE_BACKWARD_VALID, TILE_BACKWARD_LOCAL_BYTES and TILE_BACKWARD_REGISTERS.
//
// A vector is four floats, the unit of local memory. Rows that lanes stride over are an odd number
// of vectors long, so that eight neighbouring rows start in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H

#define TILE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define TILE_MAX(a, b) ((a) > (b) ? (a) : (b))

// The work-group is LANES_OWN x LANES_STEP items. Item (lane_own, lane_step) has the group's rows
// lane_own + LANES_OWN * r, and of rows of the step and of features those of vectors
// lane_step + LANES_STEP * g.
#define LANES_OWN (BLOCK_OWN / ITEM_ROWS)
#define LANES_STEP (WG_X / LANES_OWN)
#define ITEM_STEPS (BLOCK_STEP / LANES_STEP)
#define ITEM_HEADS TILE_CEIL_DIV(HEAD_DIM, 4u * LANES_STEP)    // vectors
#define ITEM_VALUES TILE_CEIL_DIV(VALUE_DIM, 4u * LANES_STEP)  // vectors

#define HEAD_SLICES TILE_CEIL_DIV(HEAD_DIM, SLICE_D)
#define VALUE_SLICES TILE_CEIL_DIV(VALUE_DIM, SLICE_D)
#define SLICE_VECTORS (SLICE_D / 4u)
#define SLICE_STRIDE (SLICE_VECTORS | 1u)
#define WEIGHT_STRIDE ((BLOCK_STEP / 4u) | 1u)
#define HEAD_STRIDE (ITEM_HEADS * LANES_STEP)
#define VALUE_STRIDE (ITEM_VALUES * LANES_STEP)

// Local memory: {slices of the group's rows; of the step's} or {weights; rows of the step}, then
// which rows of the step were seen, and a range.
#define OWN_AREA (BLOCK_OWN * SLICE_STRIDE)
#define STEP_AREA (BLOCK_STEP * SLICE_STRIDE)
#define WEIGHT_AREA (BLOCK_OWN * WEIGHT_STRIDE)
#define ROW_AREA (SLICE_STEP * TILE_MAX(HEAD_STRIDE, VALUE_STRIDE))
#define TILE_BACKWARD_VECTORS TILE_MAX(OWN_AREA + STEP_AREA, WEIGHT_AREA + ROW_AREA)
#define TILE_BACKWARD_LOCAL_BYTES (16u * TILE_BACKWARD_VECTORS + 4u * BLOCK_STEP + 8u)

// Vectors that one item copies per slice of features, COPY_ROWS rows apart; and rows that it copies
// per slice of the step, LANES_OWN apart.
#define COPY_ROWS (WG_X / SLICE_VECTORS)
#define OWN_COPIES TILE_CEIL_DIV(BLOCK_OWN, COPY_ROWS)
#define STEP_COPIES TILE_CEIL_DIV(BLOCK_STEP, COPY_ROWS)
#define ROW_COPIES TILE_CEIL_DIV(SLICE_STEP, LANES_OWN)

// 32-bit registers that one item of the keys kernel needs, about: two sums, weights and gradients,
// the larger of the two kinds of product, addresses.
#define TILE_BACKWARD_REGISTERS                                                \
  (4u * ITEM_ROWS * (ITEM_HEADS + ITEM_VALUES) + 2u * ITEM_ROWS * ITEM_STEPS + \
   TILE_MAX(4u * ITEM_STEPS + 8u, 4u * ITEM_ROWS + 16u) + 40u)

// What the kernels take for granted. Evaluate TILE_BACKWARD_DIVISORS first: the rest divides by
// them.
#define TILE_BACKWARD_DIVISORS                                                       \
  (ITEM_ROWS > 0u && BLOCK_OWN >= ITEM_ROWS && WG_X >= LANES_OWN && SLICE_D >= 4u && \
   SLICE_STEP >= 4u && WG_X >= SLICE_VECTORS)
#define TILE_BACKWARD_VALID                                                           \
  (TILE_BACKWARD_DIVISORS && BLOCK_OWN % ITEM_ROWS == 0u && WG_X % LANES_OWN == 0u && \
   BLOCK_STEP > 0u && BLOCK_STEP % (4u * LANES_STEP) == 0u && ITEM_STEPS <= 32u &&    \
   BLOCK_STEP % SLICE_STEP == 0u && SLICE_STEP % 4u == 0u && SLICE_D % 4u == 0u &&    \
   WG_X % SLICE_VECTORS == 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_TILE_BACKWARD_H
