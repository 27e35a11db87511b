// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a causal convolution: of inputs and states; shares of those of weights and bias to scratch.
// Who      An item owns four channels of CHUNK tokens, or those of the state before a sequence; it goes back in time.
// Memory   Input and gradient once and WIDTH - 1 rows for a chunk, gradients once.
// Numerics Float; what stands before the activation is made once more.
// Assumes  Operands and scratch below 2^31 elements; common/boundaries has run for packed sequences.
#include "state_space/conv/operands.clh"

KERNEL void causal_conv1d_backward(
    const global void* restrict input_elements,
    const global void* restrict weight_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    const global void* restrict doutput_elements,
    const global void* restrict dfinal_elements,
    global void* restrict dinput_elements,
    global void* restrict dinitial_elements,
    global float* scratch,
    const struct ConvArgs args) {
#include "operations/causal_conv1d/backward.h"
}
