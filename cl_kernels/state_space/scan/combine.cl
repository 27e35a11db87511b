// SPDX-License-Identifier: Apache-2.0
// What     Gradients of b, c, a, d and delta_bias of a selective scan: their shares, added up and rounded.
// Who      An item owns an element.
// Memory   Shares once.
// Numerics Float; blocks and spans in order.
// Assumes  Operands and scratch below 2^31 elements; gradients has run.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_combine(
    global void* restrict db_elements,
    global void* restrict dc_elements,
    global void* restrict da_elements,
    global void* restrict dd_elements,
    global void* restrict dbias_elements,
    global float* scratch,
    const struct ScanArgs args) {
#include "operations/selective_scan/combine.h"
}
