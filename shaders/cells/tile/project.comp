// SPDX-License-Identifier: Apache-2.0
// What     One step of a projection of recurrent cells: h, or on the way back its gradient.
// Who      A work-group owns ROWS batch entries of one panel of outputs; its WG_Y parts share the terms of the product.
// Memory   Packed weights once for each ROWS entries; states once for each panel; the rest once.
// Numerics Float; sums of parts in order.
// Assumes  Scratch and operands below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/cells_core/args.h"
#include "operations/cells_core/tile/tile.def"

layout(std430, binding = 0) buffer Scratch { float scratch[]; };
layout(std430, binding = 0) readonly buffer ScratchFours { vec4 scratch_fours[]; };
TYPED_INPUT(gradient, 1)
TYPED_OUTPUT(output, 1)
TYPED_OUTPUT(h, 2)
layout(std430, binding = 3) buffer Kept { float kept_numbers[]; };
PUSH_ARGS(CellProjectArgs);

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
#define CELL_ZERO 0.0f
#define CELL_STORE(x, at) SCRATCH(at) = (x)
#define CELL_KEEP(x) KEPT(kept) = (x)
#define CELL_GRADIENT load_gradient_steps(out_at, 0u, 1u, CELL_TYPE(args.features)).x
#define CELL_STORE_OUTPUT(x) STORE(output, x, out_at)
#define CELL_STORE_H(x) \
  STORE(h, x, ARGS(h_offset) + direction * ARGS(h_direction) + row * ARGS(h_batch) + unit * ARGS(h_unit))

shared float space[WG_Y * ROWS * CELL_BACK_VECTORS * CELL_LANES];

void main() {
#include "operations/cells_core/tile/project.h"
}
