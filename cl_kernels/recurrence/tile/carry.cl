// SPDX-License-Identifier: Apache-2.0
// What     Puts spans of sequences together: the state before each of them in place of what it makes of nothing.
// Who      An item owns four columns of a key dim, one after the other.
// Memory   States of spans once each way.
// Numerics Float, span after span.
// Assumes  Scratch below 2^31 elements.
#include "recurrence/tile/operands.clh"

KERNEL void recurrence_carry(global float* restrict scratch, const struct RecurSpanArgs args) {
#include "operations/recurrence_core/tile/carry.h"
}
