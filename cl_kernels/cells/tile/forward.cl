// SPDX-License-Identifier: Apache-2.0
// What     One step of recurrent cells: gates, and the next state.
// Who      A work-group owns ROWS batch entries of one panel of units; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#include "cells/tile/step.clh"

#define STORE_OUTPUT(x, at) STORE(x, output_elements, at)
#define CELL_SIGMOID(x) float_sigmoid(x)
#define CELL_RELU_OF(x) cell_relu(x)
#define CELL_KEEP_VALUE(block, x) \
  if (CELL_HAS(CELL_KEEPS)) KEPT(kept + (block)*hidden) = (x)

KERNEL void cells_tile_forward(global float* scratch, global void* restrict output_elements,
                       global void* restrict h_elements, global void* restrict c_elements,
                       global float* kept_numbers, const struct CellStepArgs args) {
  local float space[WG_Y * ROWS * CELL_GATES * CELL_LANES];
#include "operations/cells_core/tile/forward.h"
}
