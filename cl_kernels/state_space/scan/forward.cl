// SPDX-License-Identifier: Apache-2.0
// What     A selective scan: state = exp(step a) state + step b u, output = state c + d u, times silu(z).
// Who      A work-group owns WG_X channels of a span of tokens, an item ROWS states of a channel; it takes the tokens in order.
// Memory   Rows once; b and c once for each block of channels; states of spans once.
// Numerics Float; sums over states part after part; one rounding of each output.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences, carry where there are spans.
#include "state_space/scan/operands.clh"

KERNEL void selective_scan_forward(
    const global void* restrict u_elements,
    const global void* restrict delta_elements,
    const global void* restrict a_elements,
    const global void* restrict b_elements,
    const global void* restrict c_elements,
    const global void* restrict d_elements,
    const global void* restrict z_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    global void* restrict result_elements,
    global void* restrict final_elements,
    global float* scratch,
    const struct ScanArgs args) {
  local float4 factors[BLOCK * SCAN_STATES / 2];
  local float2 steps[BLOCK * WG_X];
  local float sums[BLOCK * SCAN_ITEMS];
#include "operations/selective_scan/forward.h"
}
