// SPDX-License-Identifier: Apache-2.0
// What     What spans of tokens make of no gradient behind them.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens from the last one on.
// Memory   delta, z, c and the gradient once for each block of channels; states once.
// Numerics Float.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_back_spans(
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict c_elements,
    const global void* restrict z_elements,
    const global void* restrict bias_elements,
    const global void* restrict doutput_elements,
    const global void* restrict dfinal_elements,
    global float* scratch,
    const struct ScanArgs args) {
  local float4 back_steps[SPAN * WG_X], factors[SPAN * SCAN_STATES / 2];
#include "operations/selective_scan/back_spans.h"
}
