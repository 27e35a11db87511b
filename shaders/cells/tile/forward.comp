// SPDX-License-Identifier: Apache-2.0
// What     One step of recurrent cells: gates, and the next state.
// Who      A work-group owns ROWS batch entries of one panel of units; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/cells_core/args.h"
#include "operations/cells_core/functions.h"
#include "operations/cells_core/tile/tile.def"

layout(std430, binding = 0) buffer Scratch { float scratch[]; };
layout(std430, binding = 0) readonly buffer ScratchFours { vec4 scratch_fours[]; };
TYPED_OUTPUT(output, 1)
TYPED_OUTPUT(h, 2)
TYPED_OUTPUT(c, 3)
layout(std430, binding = 4) buffer Kept { float kept_numbers[]; };
PUSH_ARGS(CellStepArgs);

#define UNROLL [[unroll]]
#define FLOAT4 vec4
#define ARGS(name) (args.name)
#define LOCAL_ID_X gl_LocalInvocationID.x
#define LOCAL_ID_Y gl_LocalInvocationID.y
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_ID_Y gl_WorkGroupID.y
#define GROUP_ID_Z gl_WorkGroupID.z
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define CELL_HAS(feature) ((args.features & uint(feature)) != 0u)
#define CELL_BARRIER() barrier()
#define SCRATCH(at) scratch[at]
#define KEPT(at) kept_numbers[at]
#define SCRATCH_FOUR(at) scratch_fours[at]
#define SPACE(at) space[at]
#define STORE(name, x, at) store_##name##_steps(vec4(x), at, 0u, 1u, CELL_TYPE(args.features))
#define STORE_OUTPUT(x, at) STORE(output, x, at)
#define VALUES float
#define CELL_SIGMOID(x) float_sigmoid(x)
#define CELL_TANH(x) cell_tanh(x)
#define CELL_RELU_OF(x) cell_relu(x)
#define CELL_KEEP_VALUE(block, x) \
  if (CELL_HAS(CELL_KEEPS)) KEPT(kept + (block)*hidden) = (x)
#define STORE_H(x, at) STORE(h, x, at)
#define STORE_C(x, at) STORE(c, x, at)

shared float space[WG_Y * ROWS * CELL_GATES * CELL_LANES];

void main() {
#include "operations/cells_core/tile/forward.h"
}
