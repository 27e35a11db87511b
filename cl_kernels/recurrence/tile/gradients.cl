// SPDX-License-Identifier: Apache-2.0
// What     The gradients of keys, values and decays: of the state before each token times its own gradient, which decays
//          from the last token to the first; shares of sums over columns to scratch.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
//          It takes the segments from the last one on, makes the states of each once more, and goes back through it.
// Memory   Operands twice for each tile, by way of local memory; the states of a segment through scratch.
// Numerics Float; lanes in order.
// Assumes  recurrence/tile/states has run; its assumptions.
#include "operations/recurrence_core/tile/geometry.h"
#include "recurrence/tile/operands.clh"

#define RECUR_TAKES_QUERY 1
#define RECUR_TAKES_GRADIENT 1
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

KERNEL void recurrence_gradients(
    const global void* restrict query_elements,
    const global void* restrict key_elements,
    const global void* restrict value_elements,
    const global void* restrict g_elements,
    const global void* restrict gamma_elements,
    const global void* restrict gk_elements,
    const global void* restrict gv_elements,
    const global void* restrict doutput_elements,
    const global float* restrict dfinal_elements,
    global void* restrict dvalue_elements,
    global void* restrict dgv_elements,
    global float* restrict dinitial_elements,
    global float* scratch,
    const struct RecurArgs args) {
  local float4 space[RECUR_GRADIENTS_VECTORS];
#include "operations/recurrence_core/tile/gradients.h"
}
