// SPDX-License-Identifier: Apache-2.0
// What     One step back through recurrent cells: gradients of gates and of the state before.
// Who      A work-group owns ROWS batch entries of one panel of units; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#include "cells/tile/step.clh"

#define LOAD_GRADIENT(at) load_typed_steps(gradient_elements, at, 0, 1, CELL_TYPE(args.features)).x
#define CELL_ZERO 0.0f
#define CELL_WHERE_ABOVE(x, a, b) ((x) > 0.0f ? (a) : (b))
#define CELL_KEPT_VALUE(block) KEPT(kept + (block)*hidden)

KERNEL void cells_tile_backward(global float* scratch, const global void* restrict gradient_elements,
                       global void* restrict h_elements, global void* restrict c_elements,
                       const global float* kept_numbers, const struct CellStepArgs args) {
  local float space[WG_Y * ROWS * CELL_BACK_VECTORS * CELL_LANES];
#include "operations/cells_core/tile/backward.h"
}
