// SPDX-License-Identifier: Apache-2.0
// What     What spans of a sequence make of an empty state, or the first one of the state before it, and their factors.
// Who      A work-group owns 4 WG_X columns of the state of one span of a sequence in a head, as in recurrence/tile/forward.
// Memory   key, value and decays once for each tile of columns, by way of shared memory, TOKENS tokens at a time; a state.
// Numerics Float. Factors are products, token after token.
// Assumes  Operands and scratch below 2^31 elements; key_dim is at most WG_Y ROWS; values have no decays.
#version 450
#extension GL_GOOGLE_include_directive : require
#define RECUR_NO_GV 1
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/tile.def"
#include "operations/recurrence_core/tile/geometry.h"

TYPED_INPUT(key, 0)
TYPED_INPUT(value, 1)
TYPED_INPUT(g, 2)
TYPED_INPUT(gamma, 3)
TYPED_INPUT(gk, 4)
TYPED_INPUT(gv, 5)
TYPED_INPUT(initial, 6)
layout(std430, binding = 7) writeonly buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 7) readonly buffer Boundaries { int boundaries[]; };
layout(std430, binding = 7) buffer ScratchFloats { float scratch_floats[]; };
BUFFER_ARGS(RecurArgs, 8);

shared vec4 space[RECUR_SHARES + 1u];
shared int wild_items[RECUR_ITEMS];
#include "recurrence/tile/operands.glsl"

#define RECUR_TAKES_QUERY 0
#define RECUR_TAKES_GRADIENT 0
#define RECUR_CLEAR(token) {}
#define WILD(item) wild_items[item]

void main() {
#include "operations/recurrence_core/tile/spans.h"
}
