// SPDX-License-Identifier: Apache-2.0
// What     Gradients of queries, keys and decays: the shares of all tiles of columns, added up and rounded.
// Who      A work-group owns a token of a head, an item every WG_X-th four key dims.
// Memory   Shares once, gradients once.
// Numerics Float; tiles in order, then items in order.
// Assumes  recurrence/tile/states and gradients have filled scratch.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/tile.def"

layout(std430, binding = 0) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 0) buffer ScratchFloats { float scratch_floats[]; };
layout(std430, binding = 0) readonly buffer Boundaries { int boundaries[]; };
TYPED_OUTPUT(dquery, 1)
TYPED_OUTPUT(dkey, 2)
TYPED_OUTPUT(dg, 3)
TYPED_OUTPUT(dgk, 4)
TYPED_OUTPUT(dbeta, 5)
BUFFER_ARGS(RecurArgs, 6);

shared float sums[WG_X];
#include "recurrence/tile/operands.glsl"

#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]

void main() {
#include "operations/recurrence_core/tile/combine.h"
}
