// SPDX-License-Identifier: Apache-2.0
// What     What spans of a sequence make of an empty state, or the first one of the state before it, and their factors.
// Who      A work-group owns 4 WG_X columns of the state of one span of a sequence in a head, as in recurrence/tile/forward.
// Memory   key, value and decays once for each tile of columns, by way of local memory, TOKENS tokens at a time; a state.
// Numerics Float. Factors are products, token after token.
// Assumes  Operands and scratch below 2^31 elements; key_dim is at most WG_Y ROWS; values have no decays.
#define RECUR_NO_GV 1
#include "operations/recurrence_core/tile/geometry.h"
#include "recurrence/tile/operands.clh"

#define RECUR_TAKES_QUERY 0
#define RECUR_TAKES_GRADIENT 0
#define RECUR_CLEAR(token) {}
#define WILD(item) wild_items[item]

KERNEL void recurrence_spans(const global void* restrict key_elements, const global void* restrict value_elements,
                             const global void* restrict g_elements, const global void* restrict gamma_elements,
                             const global void* restrict gk_elements, const global void* restrict gv_elements,
                             const global float* restrict initial_elements, global float* restrict scratch,
                             const struct RecurArgs args) {
  local float4 space[RECUR_SHARES + 1];
  local int wild_items[RECUR_ITEMS];
#include "operations/recurrence_core/tile/spans.h"
}
