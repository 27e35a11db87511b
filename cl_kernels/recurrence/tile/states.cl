// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries: scale state gradient of the output, summed over the columns of a tile; states on the
//          way for recurrence/tile/gradients.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the tokens in order.
// Memory   key, value, gradients and decays once for each tile, by way of local memory; shares of sums to scratch.
// Numerics Float; lanes in order.
// Assumes  Operands and scratch below 2^31 elements; key_dim is at most WG_Y ROWS, segment a multiple of TOKENS.
#include "operations/recurrence_core/tile/geometry.h"
#include "recurrence/tile/operands.clh"

#define RECUR_TAKES_QUERY 0
#define RECUR_TAKES_GRADIENT 1
#define RECUR_CLEAR(token)                                                  \
  for (u32 k = lane; k < (ARGS(key_dim) + 3u) / 4u; k += WG_X)              \
    SCRATCH(RECUR_SHARE(dquery_shares, token, k)) = RECUR_ZERO;

KERNEL void recurrence_states(
    const global void* restrict key_elements,
    const global void* restrict value_elements,
    const global void* restrict g_elements,
    const global void* restrict gamma_elements,
    const global void* restrict gk_elements,
    const global void* restrict gv_elements,
    const global float* restrict initial_elements,
    const global void* restrict doutput_elements,
    global float* scratch,
    const struct RecurArgs args) {
  local float4 space[RECUR_STATES_VECTORS];
#include "operations/recurrence_core/tile/states.h"
}
