// SPDX-License-Identifier: Apache-2.0
// What     A causal convolution of few taps along tokens, for each channel by itself, with or without silu; the last inputs.
// Who      An item owns the channels of sixteen bytes and CHUNK tokens; WIDTH - 1 inputs stay in registers.
// Memory   Input once and WIDTH - 1 rows for a chunk, AHEAD tokens asked for at once; output once.
// Numerics Float, tap after tap; one rounding of each output.
// Assumes  Rows and states contiguous by sixteen bytes; operands below 2^31 elements; common/boundaries has run for packed
//          sequences.
#include "operations/causal_conv1d/channels.h"
#include "state_space/conv/operands.clh"

#define LOAD_INPUT_VECTOR(at) ((const global uint4*)input_elements)[(at) / CONV_CHANNELS]
#define LOAD_INITIAL_VECTOR(at) ((const global uint4*)initial_elements)[(at) / CONV_CHANNELS]
#define STORE_OUTPUT_VECTOR(x, at) ((global uint4*)output_elements)[(at) / CONV_CHANNELS] = x
#define STORE_FINAL_VECTOR(x, at) ((global uint4*)final_elements)[(at) / CONV_CHANNELS] = x
#define LOAD_TAPS(at) load_typed_vector(weight_elements, at, TYPE_OF(CONV_TYPE_WEIGHT))

KERNEL void causal_conv1d_vectors(
    const global void* restrict input_elements,
    const global void* restrict weight_elements,
    const global void* restrict bias_elements,
    const global void* restrict initial_elements,
    global void* restrict output_elements,
    global void* restrict final_elements,
    global float* scratch,
    const struct ConvArgs args) {
#include "operations/causal_conv1d/vectors.h"
}
