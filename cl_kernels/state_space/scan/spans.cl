// SPDX-License-Identifier: Apache-2.0
// What     What spans of tokens make of no state, and the sums of their steps.
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens in order.
// Memory   u, delta and b once for each block of channels; states once.
// Numerics Float.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_spans(
    const global void* restrict u_elements,
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict b_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    global float* scratch,
    const struct ScanArgs args) {
  local float4 factors[BLOCK * SCAN_STATES / 2];
  local float2 steps[BLOCK * WG_X];
#include "operations/selective_scan/spans.h"
}
