// SPDX-License-Identifier: Apache-2.0
// What     One step back through recurrent cells: gradients of gates and of the state before.
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
TYPED_INPUT(gradient, 1)
TYPED_OUTPUT(h, 2)
TYPED_OUTPUT(c, 3)
layout(std430, binding = 4) readonly buffer Kept { float kept_numbers[]; };
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
#define LOAD_GRADIENT(at) load_gradient_steps(at, 0u, 1u, CELL_TYPE(args.features)).x
#define VALUES float
#define CELL_TANH(x) cell_tanh(x)
#define CELL_ZERO 0.0f
#define CELL_WHERE_ABOVE(x, a, b) ((x) > 0.0f ? (a) : (b))
#define CELL_KEPT_VALUE(block) KEPT(kept + (block)*hidden)
#define STORE_H(x, at) STORE(h, x, at)
#define STORE_C(x, at) STORE(c, x, at)

shared float space[WG_Y * ROWS * CELL_BACK_VECTORS * CELL_LANES];

void main() {
#include "operations/cells_core/tile/backward.h"
}
