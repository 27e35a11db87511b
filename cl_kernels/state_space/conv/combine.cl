// SPDX-License-Identifier: Apache-2.0
// What     Gradients of a causal convolution's weights and bias: the shares of all chunks, added up and rounded.
// Who      An item owns four channels of a tap, or of the bias.
// Memory   Shares once.
// Numerics Float; chunks in order.
// Assumes  state_space/conv/backward has run.
#include "state_space/conv/operands.clh"

KERNEL void causal_conv1d_combine(
    global void* restrict dweight_elements,
    global void* restrict dbias_elements,
    global float* scratch,
    const struct ConvArgs args) {
#include "operations/causal_conv1d/combine.h"
}
