// SPDX-License-Identifier: Apache-2.0
// What     One step of a projection of recurrent cells: h, or on the way back its gradient.
// Who      A work-group owns ROWS batch entries of one panel of outputs; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#include "cells/tile/step.clh"

#define CELL_ZERO 0.0f
#define CELL_STORE(x, at) SCRATCH(at) = (x)
#define CELL_KEEP(x) KEPT(kept) = (x)
#define CELL_GRADIENT load_typed_steps(elements, out_at, 0, 1, CELL_TYPE(args.features)).x
#define CELL_STORE_OUTPUT(x) STORE(x, elements, out_at)
#define CELL_STORE_H(x) \
  STORE_H(x, ARGS(h_offset) + direction * ARGS(h_direction) + row * ARGS(h_batch) + unit * ARGS(h_unit))

KERNEL void cells_tile_project(global float* scratch, global void* restrict elements, global void* restrict h_elements,
                               global float* kept_numbers, const struct CellProjectArgs args) {
  local float space[WG_Y * ROWS * CELL_BACK_VECTORS * CELL_LANES];
#include "operations/cells_core/tile/project.h"
}
