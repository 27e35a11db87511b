// SPDX-License-Identifier: Apache-2.0
// What     GGUF's blocks of 32 codes of 8 or 4 bits to floats.
// Who      An item owns a block at a time.
// Memory   A block by bytes; floats once, by vectors where fours are aligned.
// Numerics Float: one product, rounded to the storage type.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"
#include "operations/quantised_core/scale.h"

#define FLOAT4 float4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define GLOBAL_ID ((uint)get_global_id(0))
#define GLOBAL_COUNT ((uint)get_global_size(0))
#define ARGS(name) (args.name)
#define FLOATS(i) numbers[i]
#define LOAD_CODE_BYTE(at) load_byte(codes, at)
#define STORE_FLOATS_VECTOR(x, at, type) store_typed_vector(x, floats, at, type)
#define STORE_FLOATS_STEPS(x, at, step, count, type) store_typed_steps(x, floats, at, step, count, type)

KERNEL void gguf_dequantise(const global uchar* restrict codes, global void* restrict floats,
                            const struct CodesArgs args) {
  float numbers[4];
#include "operations/quantise/gguf/dequantise.h"
}
