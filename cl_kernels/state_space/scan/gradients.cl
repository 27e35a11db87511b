// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a selective scan: of rows and initial states; shares of those of b and c for blocks of channels, and of
//          a, d and delta_bias for spans.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens from the last one on.
// Memory   Rows once; b and c once for each block of channels; the states of a span and their gradients in local memory.
// Numerics Float; sums over channels lane after lane.
// Assumes  Operands and scratch below 2^31 elements; carry has run both ways.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_gradients(
    const global void* restrict u_elements,
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict b_elements,
    const global void* restrict c_elements,
    const global void* restrict d_elements,
    const global void* restrict z_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    const global void* restrict doutput_elements,
    const global void* restrict dfinal_elements,
    global void* restrict du_elements,
    global void* restrict ddelta_elements,
    global void* restrict dz_elements,
    global void* restrict dinitial_elements,
    global float* scratch,
    const struct ScanArgs args) {
  local float4 inner[SPAN * SCAN_FOURS * SCAN_ITEMS], of_b[SPAN * SCAN_FOURS * SCAN_ITEMS];
  local float4 back_steps[SPAN * WG_X], factors[SPAN * SCAN_STATES / 2];
  local float sums[3 * SPAN * SCAN_ITEMS], totals[2 * SCAN_ITEMS];
#include "operations/selective_scan/gradients.h"
}
