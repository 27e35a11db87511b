// SPDX-License-Identifier: Apache-2.0
// What     A recurrence, step by step: state = decay * state + key value^T, output = scale state^T query.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order.
// Memory   query, key and decays once for each tile of columns, by way of local memory, TOKENS tokens at a time; value,
//          output and the states once.
// Numerics Float. The decays are added up before exp is taken of them; outputs are sums over key dims, lanes in order.
// Assumes  Operands below 2^31 elements; key_dim is at most WG_Y ROWS.
#include "lib/typed.clh"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/tile/geometry.h"
#include "recurrence/tile/operands.clh"

#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 0
#define RECUR_CLEAR(token) \
  if (left > 0) STORE_OUTPUT(RECUR_ZERO, RECUR_ROW(result, token) + column, left);

KERNEL void recurrence_forward(const global void* restrict query_elements, const global void* restrict key_elements,
                               const global void* restrict value_elements, const global void* restrict g_elements,
                               const global void* restrict gamma_elements, const global void* restrict gk_elements,
                               const global void* restrict gv_elements, const global float* restrict initial_elements,
                               global void* restrict output_elements, global float* restrict final_elements,
                               global float* restrict scratch, const struct RecurArgs args) {
  local float4 space[RECUR_FORWARD_VECTORS];
#include "operations/recurrence_core/tile/forward.h"
}
