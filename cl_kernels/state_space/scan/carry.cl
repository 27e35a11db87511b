// SPDX-License-Identifier: Apache-2.0
// What     Puts spans together: the states before them, or the gradients behind them, in place of what they make of none.
// Who      A work-group owns WG_X channels of a batch entry, an item ROWS states of a channel, span after span.
// Memory   States of spans once each way.
// Numerics Float; factors of spans are exp of sums of steps.
// Assumes  Operands and scratch below 2^31 elements; spans or back_spans has run.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_carry(
    const global void* restrict a_elements,
    global float* scratch,
    const struct ScanArgs args) {
#include "operations/selective_scan/carry.h"
}
