// SPDX-License-Identifier: Apache-2.0
// What     The gradients of keys, values and decays: of the state before each token times its own gradient, which decays
//          from the last token to the first; shares of sums over columns to scratch.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the segments from the last one on, makes the states of each once more, and goes back through it.
// Memory   Operands twice for each tile, by way of shared memory; the states of a segment through scratch.
// Numerics Float; lanes in order.
// Assumes  recurrence/tile/states has run; its assumptions.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/tile.def"
#include "operations/recurrence_core/tile/geometry.h"

TYPED_INPUT(query, 0)
TYPED_INPUT(key, 1)
TYPED_INPUT(value, 2)
TYPED_INPUT(g, 3)
TYPED_INPUT(gamma, 4)
TYPED_INPUT(gk, 5)
TYPED_INPUT(gv, 6)
TYPED_INPUT(doutput, 7)
TYPED_INPUT(dfinal, 8)
TYPED_OUTPUT(dvalue, 9)
TYPED_OUTPUT(dgv, 10)
TYPED_OUTPUT(dinitial, 11)
layout(std430, binding = 12) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 12) readonly buffer Boundaries { int boundaries[]; };
BUFFER_ARGS(RecurArgs, 13);

shared vec4 space[RECUR_GRADIENTS_VECTORS];
#include "recurrence/tile/operands.glsl"

#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 1
#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]
#define RECUR_CLEAR(token)                                                                       \
  {                                                                                              \
    for (u32 k = lane; k < (ARGS(key_dim) + 3u) / 4u; k += WG_X) {                               \
      SCRATCH(RECUR_SHARE(dkey_shares, token, k)) = RECUR_ZERO;                                        \
      if (RECUR_HAS(RECUR_GRAD_DECAY)) SCRATCH(RECUR_SHARE(decay_shares, token, k)) = RECUR_ZERO;      \
    }                                                                                            \
    if (RECUR_HAS(RECUR_GRAD_VALUE) && left > 0u)                                                \
      STORE_DVALUE(RECUR_ZERO, RECUR_ROW(dvalue, token) + column, left);                               \
    if (RECUR_HAS(RECUR_GRAD_GV) && left > 0u) STORE_DGV(RECUR_ZERO, RECUR_ROW(dgv, token) + column, left); \
  }

void main() {
#include "operations/recurrence_core/tile/gradients.h"
}
