// SPDX-License-Identifier: Apache-2.0
// What     Codes of 8 or 4 bits to floats: (code - zero point) scale.
// Who      LANES items own a block of codes that share a scale at a time.
// Memory   Codes once, by words where eights are aligned; floats once.
// Numerics Float: the difference is exact; one product, or one division, rounded to the storage type.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"

#define FLOAT4 float4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define LOCAL_ID ((uint)get_local_id(0))
#define GROUP_ID ((uint)get_group_id(0))
#define GROUP_COUNT ((uint)get_num_groups(0))
#define ARGS(name) (args.name)
#define WORD(j) word[j]
#define LOAD_SCALE(at) scales[at]
#define LOAD_ZERO_BYTE(at) load_byte(zeros, at)
#define LOAD_ZERO_HALF_BYTE(at) load_half_byte(zeros, at)
#define LOAD_CODE_BYTE(at) load_byte(codes, at)
#define LOAD_CODE_WORD(at) *(const global uint*)(codes + (at))
#define STORE_FLOATS_VECTOR(x, at, type) store_typed_vector(x, floats, at, type)
#define STORE_FLOATS_STEPS(x, at, step, count, type) store_typed_steps(x, floats, at, step, count, type)

KERNEL void codes_dequantise(const global uchar* restrict codes, const global float* restrict scales,
                             const global uchar* restrict zeros, global void* restrict floats,
                             const struct CodesArgs args) {
  uint word[2];
#include "operations/quantise/dequantise.h"
}
