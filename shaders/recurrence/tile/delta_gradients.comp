// SPDX-License-Identifier: Apache-2.0
// What     The gradients of keys, values, beta and decays of a delta rule: of the state before each token, decayed, and of
//          its own gradient, which goes from the last token to the first; shares of sums over columns to scratch.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the segments from the last one on, makes the states of each once more, and goes back through it; a
//          barrier for each token on each way.
// Memory   Operands twice for each tile, by way of shared memory; the states of a segment through scratch.
// Numerics Float; lanes in order.
// Assumes  recurrence/tile/delta_states has run; its assumptions.
#version 450
#extension GL_GOOGLE_include_directive : require
#define RECUR_DELTA 1
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/tile.def"
#include "operations/recurrence_core/tile/geometry.h"

TYPED_INPUT(query, 0)
TYPED_INPUT(key, 1)
TYPED_INPUT(value, 2)
TYPED_INPUT(beta, 3)
TYPED_INPUT(g, 4)
TYPED_INPUT(doutput, 5)
TYPED_INPUT(dfinal, 6)
TYPED_OUTPUT(dvalue, 7)
TYPED_OUTPUT(dinitial, 8)
layout(std430, binding = 9) buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 9) readonly buffer Boundaries { int boundaries[]; };
layout(std430, binding = 9) buffer ScratchFloats { float scratch_floats[]; };
BUFFER_ARGS(RecurArgs, 10);

shared vec4 space[RECUR_DELTA_GRADIENTS_VECTORS];
#include "recurrence/tile/operands.glsl"

#define RECUR_FOUND RECUR_GRADIENTS_VECTORS
#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 1
#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]
#define RECUR_CLEAR(token)                                                                           \
  {                                                                                                  \
    if (lane == 0u) SCRATCH_FLOAT(RECUR_BETA_SHARE(token)) = RECUR_ZERO.x;                            \
    for (u32 k = lane; k < (ARGS(key_dim) + 3u) / 4u; k += WG_X) {                                   \
      SCRATCH(RECUR_SHARE(dkey_shares, token, k)) = RECUR_ZERO;                                      \
      if (RECUR_HAS(RECUR_GRAD_DECAY)) SCRATCH(RECUR_SHARE(decay_shares, token, k)) = RECUR_ZERO;    \
    }                                                                                                \
    if (RECUR_HAS(RECUR_GRAD_VALUE) && left > 0u)                                                    \
      STORE_DVALUE(RECUR_ZERO, RECUR_ROW(dvalue, token) + column, left);                             \
  }

void main() {
#include "operations/recurrence_core/tile/gradients.h"
}
