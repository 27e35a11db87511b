// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group owns ROWS x COLUMNS elements of output; an item has every WG_X-th chunk of 32 terms. Blocks of
//          rows are neighbours, so that they find the weights in a cache.
// Memory   Weights once, 16 bytes at a time; the rows of input from a cache.
// Numerics Float: code minus zero is exact; the sum of a chunk, times its scale, joins the item's sum; items as a tree.
// Assumes  Operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/stored.clh"
#include "lib/tiles/features.clh"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/chunk.h"
#include "operations/quantised_core/scale.h"

#define FLOAT4 float4
#define UINT4 uint4
#define MAKE_FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define MAKE_UINT4(x, y, z, w) ((uint4)(x, y, z, w))
#define FLOATS_OF(x) convert_float4(x)
#define LOCAL_ID_X ((uint)get_local_id(0))
#define GROUP_ID_X ((uint)get_group_id(0))
#define GROUP_COUNT_X ((uint)get_num_groups(0))
#define ARGS(name) (args.name)
#define WORDS(i) word_list[i]
#define PART(i) part[i]
#define SUM(i) sum[i]
#define SCALE(i) scale_of[i]
#define ZERO(i) zero_of[i]
#define DECODED(i) decoded[i]
#define SHARED(i) shared_sums[i]
#define SHARED_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOAD_WORDS(at) *((const global uint4*)(weight + (at)))
#define LOAD_WEIGHT_BYTE(at) load_byte(weight, at)
#define LOAD_SCALE(at, type) load_typed_steps(scale, at, 1, 1, type).s0
#define LOAD_ZERO_BYTE(at) load_byte(zero, at)
#define LOAD_ZERO_HALF_BYTE(at) load_half_byte(zero, at)
#define LOAD_INPUT_VECTOR(at, type) load_stored_vector(input, at, type)
#define LOAD_INPUT_STEPS(at, step, count, type) load_stored_steps(input, at, step, count, type)
#define LOAD_INPUT_SCALE(at) input_scale[at]
#define STORE_OUTPUT(x, at, type) store_typed_steps(x, output, at, 1, 1, type)

KERNEL void quantised_product(const global void* restrict input, const global uchar* restrict weight,
                              const global void* restrict scale, const global uchar* restrict zero,
                              const global float* restrict input_scale, global void* restrict output, const struct QuantArgs args) {
  local float shared_sums[ROWS * COLUMNS * WG_X];
  uint word_list[8 * COLUMNS];
  float part[ROWS * COLUMNS], sum[ROWS * COLUMNS], scale_of[COLUMNS], zero_of[COLUMNS];
  float4 decoded[COLUMNS];
#include "operations/quantised_core/rows/product.h"
}
