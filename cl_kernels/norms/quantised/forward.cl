// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias in 8 bits, with the scale of each row, and the sum.
// Who      A line of WG_X items owns a row at a time, an item VECTORS vectors of four elements of it.
// Memory   x and residual once, output and sum once, where 4 * VECTORS * WG_X elements hold a row; else what is beyond
//          is read again, from a cache as a rule, for each pass and for the largest. Weights: caches.
// Numerics Float; the mean comes off before squares are summed. Lanes, then folds, in one order. scale = max(largest
//          magnitude, 2^-100) / largest number of the type; output times the inverse of that, a float, is rounded once,
//          to nearest even. A NaN is no largest.
// Assumes  Rows below 2^31, operands below 2^32 elements, ALIGNED is true where it is 1.
#include "norms/core/operands.clh"
#include "lib/codes.clh"
#include "operations/norms/quantised/args.h"
#define NORM_SUMS 1u

typedef struct {
  const struct NormForwardArgs* args;
  const global scalar *x, *weight, *bias, *residual;
  global uchar* y;
  global scalar* sum;
  local float4* space;
} NormOperands;

#define ABSOLUTE(x) fabs(x)
#define QUANTISED_ARGS(name) (args.name)
#if SM80
#define NORM_WARP_LARGEST(x) warp_largest(x)
#else
#define NORM_WARP_LARGEST(x) (x)
#endif

INLINE void store_codes(float4 x, u32 type, global uchar* y, size_t at, uint left) {
  const uint word = code_word(x, type);
  if (ALIGNED) {
    *(global uint*)(y + at) = word;
    return;
  }
  y[at] = (uchar)word;
  if (left > 1) y[at + 1] = (uchar)(word >> 8);
  if (left > 2) y[at + 2] = (uchar)(word >> 16);
  if (left > 3) y[at + 3] = (uchar)(word >> 24);
}

// Of a chunk; `second` is left out where a chunk has one vector.
INLINE void store_codes_chunk(float4 first, float4 second, u32 type, global uchar* y, size_t at, uint left) {
  if (CHUNK_IS_PACKED) {
    *(global uint2*)(y + at) = (uint2)(code_word(first, type), code_word(second, type));
    return;
  }
  store_codes(first, type, y, at, left);
}

#define LOAD_X(at, left) load_column(operands->x, at, left)
#define LOAD_RESIDUAL(at, left) load_column(operands->residual, at, left)
#define LOAD_X_CHUNK(at, left) load_chunk(operands->x, at, left)
#define LOAD_RESIDUAL_CHUNK(at, left) load_chunk(operands->residual, at, left)
#define LOAD_WEIGHT_CHUNK(at, left) load_chunk(operands->weight, at, left)
#define LOAD_BIAS_CHUNK(at, left) load_chunk(operands->bias, at, left)
#define LOAD_WEIGHT(at, left) \
  load_any_column(operands->weight, at, left, (ARGS(features) & NORM_WIDE_WEIGHT) != 0u)
#define LOAD_BIAS(at, left) \
  load_any_column(operands->bias, at, left, (ARGS(features) & NORM_WIDE_BIAS) != 0u)
#define STORE_SUM(value, at, left) store_column(value, operands->sum, at, left)
#define STORE_SUM_CHUNK(first, second, at, left) store_chunk(first, second, operands->sum, at, left)
#define STORE_SCALE(value, at) scales[at] = (value)
#define STORE_CODES(value, type, at, left) store_codes(value, type, operands->y, at, left)
#define STORE_CODES_CHUNK(first, second, type, at, left) store_codes_chunk(first, second, type, operands->y, at, left)
#include "operations/norms/lines.h"
#include "operations/norms/quantised/largest.h"
#include "operations/norms/weigh.h"

KERNEL void norm_quantised(const global scalar* restrict x_elements, const global scalar* restrict weight,
                           const global scalar* restrict bias, const global scalar* restrict residual_elements,
                           global uchar* restrict y_elements, global scalar* restrict sum_elements,
                           global float* restrict scales, const struct NormQuantisedArgs args) {
  local float4 space[WG_Y * NORM_SUMS * NORM_LINE / 4];
  const NormOperands call = {&args.norm, x_elements, weight, bias, residual_elements, y_elements, sum_elements, space};
  const NormOperands* operands = &call;
#include "operations/norms/quantised/row.h"
}
