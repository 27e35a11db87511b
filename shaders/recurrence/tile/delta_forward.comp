// SPDX-License-Identifier: Apache-2.0
// What     A delta rule, step by step: state = decay * state, state += beta key (value - state^T key)^T, output = scale
//          state^T query.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order; a barrier for each, by which items know what the state holds for the key.
// Memory   query, key, beta and decays once for each tile of columns, by way of shared memory, TOKENS tokens at a time;
//          value, output and the states once.
// Numerics Float; products with keys and queries are sums over key dims, lanes in order.
// Assumes  Operands below 2^31 elements; key_dim is at most WG_Y ROWS.
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
TYPED_INPUT(initial, 5)
TYPED_OUTPUT(output, 6)
TYPED_OUTPUT(final, 7)
TYPED_INPUT(carried, 8)
TYPED_OUTPUT(paused, 8)
layout(std430, binding = 8) readonly buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 8) readonly buffer Boundaries { int boundaries[]; };
BUFFER_ARGS(RecurArgs, 9);

shared vec4 space[RECUR_DELTA_FORWARD_VECTORS];
#include "recurrence/tile/operands.glsl"

#define RECUR_FOUND RECUR_FORWARD_VECTORS
#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 0
#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]
#define RECUR_CLEAR(token) \
  if (left > 0u) STORE_OUTPUT(RECUR_ZERO, RECUR_ROW(result, token) + column, left);

void main() {
#include "operations/recurrence_core/tile/forward.h"
}
