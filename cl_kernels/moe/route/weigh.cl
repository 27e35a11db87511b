// SPDX-License-Identifier: Apache-2.0
// What     Scores of choices to weights: over their sum where asked for, times the scale; 0 of choices without a place
// Who      An item owns a token.
// Memory   Scores and places of a token's choices.
// Numerics Float; the sum in the order of choices.
// Assumes  Fewer than 2^31 choices.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"

#define SLOT(i) slots[args.slots_offset + (i)]
#define WEIGHT(i) weights[args.weights_offset + (i)]

KERNEL void moe_weigh(const global int* restrict slots, global float* restrict weights, const struct MoeRouteArgs args) {
#include "operations/moe/route/weigh.h"
}
