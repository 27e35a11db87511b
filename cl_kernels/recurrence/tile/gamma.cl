// SPDX-License-Identifier: Apache-2.0
// What     The gradient of a decay of each head: sums over tokens.
// Who      A work-group owns a head, an item every WG_X-th token.
// Memory   A number of each token once.
// Numerics Float; the tokens of an item in order, then items in order.
// Assumes  recurrence/tile/combine has filled scratch.
#include "recurrence/tile/operands.clh"

KERNEL void recurrence_gamma(
    global float* scratch,
    global void* restrict dgamma_elements,
    const struct RecurArgs args) {
  local float sums[WG_X];
#include "operations/recurrence_core/tile/gamma.h"
}
