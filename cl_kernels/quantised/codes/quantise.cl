// SPDX-License-Identifier: Apache-2.0
// What     Floats to codes of 8 or 4 bits, with a scale, and a zero point where codes have no sign, for each block.
// Who      LANES items own a block at a time.
// Memory   Floats twice, the second time from a cache; codes by words where eights are aligned.
// Numerics Float: a scale is one division, a quotient one more; then one rounding to the code, to nearest even.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/lines.clh"
#include "lib/typed.clh"
#include "operations/quantise/args.h"
#include "operations/quantise/codes.h"

#define FLOAT4 float4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define LOCAL_ID ((uint)get_local_id(0))
#define GROUP_ID ((uint)get_group_id(0))
#define GROUP_COUNT ((uint)get_num_groups(0))
#define ARGS(name) (args.name)
#define FLOATS(j) eight[j]
#define CODE(j) code[j]
#define LOAD_FLOATS_VECTOR(at, type) load_typed_vector(floats, at, type)
#define LOAD_FLOATS_STEPS(at, step, count, type) load_typed_steps(floats, at, step, count, type)
#define STORE_SCALE(value, at) scales[at] = (value)
#define STORE_ZERO_BYTE(bits, at) store_byte(bits, zeros, at);
#define STORE_ZERO_HALF_BYTE(bits, at) store_half_byte(bits, zeros, at);
#define STORE_CODE_BYTE(bits, at) store_byte(bits, codes, at);
#define STORE_CODE_WORD(bits, at) *(global uint*)(codes + (at)) = (bits)

KERNEL void codes_quantise(const global void* restrict floats, global uchar* restrict codes,
                           global float* restrict scales, global uchar* restrict zeros, const struct CodesArgs args) {
#if LANES > 1
  local float space[WG_X];
#endif
  float eight[8];
  uint code[8];
#include "operations/quantise/quantise.h"
}
