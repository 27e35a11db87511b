// SPDX-License-Identifier: Apache-2.0
// What     Floats to GGUF's blocks of 32, a half as scale and codes of 8 or 4 bits, and the scales as floats.
// Who      An item owns a block at a time.
// Memory   Floats once, by vectors where fours are aligned; a block by bytes.
// Numerics Float: a scale is one division, its inverse another; codes as ggml rounds them.
// Assumes  Operands below 2^31 elements.
#pragma OPENCL FP_CONTRACT OFF
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantised_core/scale.h"
#define PRECISE
#include "operations/quantise/gguf/codes.h"

#define FLOAT4 float4
#define GLOBAL_ID ((uint)get_global_id(0))
#define GLOBAL_COUNT ((uint)get_global_size(0))
#define ARGS(name) (args.name)
#define FLOATS(i) numbers[i]
#define LOAD_FLOATS_VECTOR(at, type) load_typed_vector(floats, at, type)
#define LOAD_FLOATS_STEPS(at, step, count, type) load_typed_steps(floats, at, step, count, type)
#define STORE_SCALE(value, at) scales[at] = (value)
#define STORE_CODE_BYTE(bits, at) store_byte(bits, codes, at);

KERNEL void gguf_quantise(const global void* restrict floats, global uchar* restrict codes,
                          global float* restrict scales, const struct CodesArgs args) {
  float numbers[32];
#include "operations/quantise/gguf/quantise.h"
}
