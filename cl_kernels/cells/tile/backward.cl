// SPDX-License-Identifier: Apache-2.0
// What     One step back through recurrent cells: gradients of gates and of the state before.
// Who      A work-group owns ROWS batch entries of one panel of units; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#include "lib/typed.clh"
#include "operations/cells_core/args.h"
#include "operations/cells_core/functions.h"

#define FLOAT4 float4
#define ARGS(name) (args.name)
#define LOCAL_ID_X ((uint)get_local_id(0))
#define LOCAL_ID_Y ((uint)get_local_id(1))
#define GROUP_ID_X ((uint)get_group_id(0))
#define GROUP_ID_Y ((uint)get_group_id(1))
#define GROUP_ID_Z ((uint)get_group_id(2))
#define GROUP_COUNT_X ((uint)get_num_groups(0))
#define CELL_HAS(feature) ((args.features & (feature)) != 0)
#define CELL_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define SCRATCH(at) scratch[at]
#define SCRATCH_FOUR(at) ((const global float4*)scratch)[at]
#define SPACE(at) space[at]
#define STORE(x, to, at) store_typed_steps((float4)(x), to, at, 0, 1, args.type)
#define LOAD_GRADIENT(at) load_typed_steps(gradient_elements, at, 0, 1, args.type).x
#define VALUES float
#define CELL_SIGMOID(x) cell_sigmoid(x)
#define CELL_TANH(x) cell_tanh(x)
#define CELL_ZERO 0.0f
#define CELL_WHERE_ABOVE(x, a, b) ((x) > 0.0f ? (a) : (b))
#define CELL_KEPT_VALUE(block) SCRATCH(kept + (block)*hidden)
#define CELL_BEFORE_VALUE SCRATCH(ARGS(before) + place * hidden + unit)
#define STORE_H(x, at) STORE(x, h_elements, at)
#define STORE_C(x, at) STORE(x, c_elements, at)

KERNEL void cells_tile_backward(global float* scratch, const global void* restrict gradient_elements,
                       global void* restrict h_elements, global void* restrict c_elements,
                       const struct CellStepArgs args) {
  local float space[WG_Y * ROWS * CELL_BACK_VECTORS * CELL_LANES];
#include "operations/cells_core/tile/backward.h"
}
