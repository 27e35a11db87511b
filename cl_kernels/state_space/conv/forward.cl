// SPDX-License-Identifier: Apache-2.0
// What     A causal convolution of few taps along tokens, for each channel by itself, with or without silu; the last inputs.
// Who      An item owns four channels of CHUNK tokens, or those of the state behind a sequence.
// Memory   Input once and WIDTH - 1 rows for a chunk, output once.
// Numerics Float, tap after tap; one rounding of each output.
// Assumes  Operands below 2^31 elements; common/boundaries has run for packed sequences.
#include "state_space/conv/operands.clh"

KERNEL void causal_conv1d_forward(
    const global void* restrict input_elements,
    const global void* restrict weight_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    global void* restrict output_elements,
    global void* restrict final_elements,
    global float* scratch,
    const struct ConvArgs args) {
#include "operations/causal_conv1d/forward.h"
}
