// SPDX-License-Identifier: Apache-2.0
// What     Before the steps of recurrent cells: recurrent weights in panels, bias, lengths and states as floats.
// Who      An item takes elements one pace apart.
// Memory   Operands once; scratch once.
// Numerics Copies.
// Assumes  Operands and scratch below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "lib/errors.glsl"
#include "operations/cells_core/args.h"

TYPED_INPUT(weight, 0)
TYPED_INPUT(bias, 1)
TYPED_INPUT(h, 2)
TYPED_INPUT(c, 3)
layout(std430, binding = 4) readonly buffer Lengths { int given_lengths[]; };
TYPED_INPUT(input, 5)
layout(std430, binding = 6) writeonly buffer Scratch { float scratch[]; };
TYPED_OUTPUT(clean, 6)
layout(std430, binding = 7) buffer Errors { uint errors[]; };
BUFFER_ARGS(CellBeginArgs, 8);

#define ARGS(name) (args.name)
#define LOCAL_ID_X gl_LocalInvocationID.x
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define CELL_HAS(feature) ((args.features & uint(feature)) != 0u)
#define LOAD(name, at) load_##name##_steps(at, 0u, 1u, args.type).x
#define LOAD_WEIGHT(at) LOAD(weight, at)
#define LOAD_BIAS(at) LOAD(bias, at)
#define LOAD_H(at) LOAD(h, at)
#define LOAD_C(at) LOAD(c, at)
#define LOAD_INPUT(at) LOAD(input, at)
#define LOAD_LENGTH(at) given_lengths[at]
#define SCRATCH(at) scratch[at]
#define STORE_CLEAN(x, at) store_clean_steps(vec4(x), at, 0u, 1u, args.type)
#define RAISE(error, index) RAISE_ERROR(errors, args.errors, error, index)

void main() {
#include "operations/cells_core/begin.h"
}
