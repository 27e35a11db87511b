// SPDX-License-Identifier: Apache-2.0
// What     A recurrence, step by step: state = decay * state + key value^T, output = scale state^T query.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order.
// Memory   query, key and decays once for each tile of columns, by way of shared memory, TOKENS tokens at a time; value,
//          output and the states once.
// Numerics Float. The decays are added up before exp is taken of them; outputs are sums over key dims, lanes in order.
// Assumes  Operands below 2^31 elements; key_dim is at most WG_Y ROWS.
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
TYPED_INPUT(initial, 7)
TYPED_OUTPUT(output, 8)
TYPED_OUTPUT(final, 9)
TYPED_INPUT(carried, 10)
TYPED_OUTPUT(paused, 10)
layout(std430, binding = 10) readonly buffer Scratch { vec4 scratch[]; };
layout(std430, binding = 10) readonly buffer Boundaries { int boundaries[]; };
BUFFER_ARGS(RecurArgs, 11);

shared vec4 space[RECUR_FORWARD_VECTORS];
#include "recurrence/tile/operands.glsl"

#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 0
#define LOAD_MARK(i) boundaries[RECUR_MARK_PLACE(i)]
#define RECUR_CLEAR(token) \
  if (left > 0u) STORE_OUTPUT(RECUR_ZERO, RECUR_ROW(result, token) + column, left);

void main() {
#include "operations/recurrence_core/tile/forward.h"
}
