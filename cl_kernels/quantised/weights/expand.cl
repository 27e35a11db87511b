// SPDX-License-Identifier: Apache-2.0
// What     Weights in 8 or 4 bits as floats, (code - zero) scale.
// Who      An item owns 32 weights of a row at a time.
// Memory   Weights once, by bytes; a float for each.
// Numerics Float: the difference is exact, one rounding for the product.
// Assumes  Operands below 2^31 elements, and as many floats.
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/chunk.h"
#include "operations/quantised_core/scale.h"

#define GLOBAL_ID_X ((uint)get_global_id(0))
#define GLOBAL_SIZE_X ((uint)get_global_size(0))
#define ARGS(name) (args.name)
#define FORMAT ARGS(format)
#define LOAD_WEIGHT_BYTE(at) load_byte(weight, at)
#define LOAD_SCALE(at, type) load_typed_steps(scales, at, 1, 1, type).s0
#define LOAD_ZERO_BYTE(at) load_byte(zeros, at)
#define LOAD_ZERO_HALF_BYTE(at) load_half_byte(zeros, at)
#define STORE_NUMBER(x, at) numbers[at] = (x)

KERNEL void quantised_expand(const global uchar* restrict weight, const global void* restrict scales,
                             const global uchar* restrict zeros, global float* restrict numbers,
                             const struct QuantArgs args) {
#include "operations/quantised_core/weights/expand.h"
}
