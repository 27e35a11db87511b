// SPDX-License-Identifier: Apache-2.0
// What     Gradients of queries, keys and decays: the shares of all tiles of columns, added up and rounded.
// Who      A work-group owns a token of a head, an item every WG_X-th four key dims.
// Memory   Shares once, gradients once.
// Numerics Float; tiles in order, then items in order.
// Assumes  recurrence/tile/states and gradients have filled scratch.
#include "recurrence/tile/operands.clh"

KERNEL void recurrence_combine(
    global float* scratch,
    global void* restrict dquery_elements,
    global void* restrict dkey_elements,
    global void* restrict dg_elements,
    global void* restrict dgk_elements,
    global void* restrict dbeta_elements,
    const struct RecurArgs args) {
  local float sums[WG_X];
#include "operations/recurrence_core/tile/combine.h"
}
