// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries of a delta rule: scale state gradient of the output, summed over the columns of a tile;
//          states on the way for recurrence/tile/delta_gradients.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order, a barrier for each.
// Memory   key, value, beta, gradients and decays once for each tile, by way of shared memory; shares of sums to scratch.
// Numerics Float; lanes in order.
// Assumes  Operands and scratch below 2^31 elements; key_dim is at most WG_Y ROWS, segment a multiple of TOKENS.
#version 450
#extension GL_GOOGLE_include_directive : require
#define RECUR_DELTA 1
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/tile.def"
#include "operations/recurrence_core/tile/geometry.h"

TYPED_INPUT(key, 0)
TYPED_INPUT(value, 1)
TYPED_INPUT(beta, 2)
TYPED_INPUT(g, 3)
TYPED_INPUT(initial, 4)
TYPED_INPUT(doutput, 5)
layout(std430, binding = 6) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 6) readonly buffer Boundaries { int boundaries[]; };
BUFFER_ARGS(RecurArgs, 7);

shared vec4 space[RECUR_DELTA_STATES_VECTORS];
#include "recurrence/tile/operands.glsl"

#define RECUR_FOUND RECUR_STATES_VECTORS
#define RECUR_TAKES_QUERY 0
#define RECUR_TAKES_GRADIENT 1
#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]
#define RECUR_CLEAR(token)                                                  \
  for (u32 k = lane; k < (ARGS(key_dim) + 3u) / 4u; k += WG_X)              \
    SCRATCH(RECUR_SHARE(dquery_shares, token, k)) = RECUR_ZERO;

void main() {
#include "operations/recurrence_core/tile/states.h"
}
