// SPDX-License-Identifier: Apache-2.0
// What     A delta rule, step by step: state = decay * state, state += beta key (value - state^T key)^T, output = scale
//          state^T query.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order; a barrier for each, by which items know what the state holds for the key.
// Memory   query, key, beta and decays once for each tile of columns, by way of local memory, TOKENS tokens at a time;
//          value, output and the states once.
// Numerics Float; products with keys and queries are sums over key dims, lanes in order.
// Assumes  Operands below 2^31 elements; key_dim is at most WG_Y ROWS.
#define RECUR_DELTA 1
#include "operations/recurrence_core/tile/geometry.h"
#include "recurrence/tile/operands.clh"

#define RECUR_FOUND RECUR_FORWARD_VECTORS
#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 0
#define RECUR_CLEAR(token) \
  if (left > 0) STORE_OUTPUT(RECUR_ZERO, RECUR_ROW(result, token) + column, left);

KERNEL void recurrence_delta_forward(
    const global void* restrict query_elements,
    const global void* restrict key_elements,
    const global void* restrict value_elements,
    const global void* restrict beta_elements,
    const global void* restrict g_elements,
    const global float* restrict initial_elements,
    global void* restrict output_elements,
    global float* restrict final_elements,
    global float* restrict scratch,
    const struct RecurArgs args) {
  local float4 space[RECUR_DELTA_FORWARD_VECTORS];
#include "operations/recurrence_core/tile/forward.h"
}
