// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias in 8 bits, with the scale of each row, and the sum.
// Who      A work-group of WG_X items owns a row at a time, an item every WG_X-th element of it.
// Memory   x and residual once from memory, then from a cache: for the mean, the squares, the largest and the output.
//          A byte of output for each element.
// Numerics Float; the mean comes off before squares are summed; sums and maxima as trees. scale = max(largest magnitude,
//          2^-100) / largest number of the type; output / scale is rounded once, to nearest even. A NaN is no largest.
// Assumes  Rows below 2^31, offsets and strides below 2^32.
#include "lib/bytes.clh"
#include "operations/norms/quantised/args.h"

#define INDEX size_t
#define LOCAL_ID ((uint)get_local_id(0))
#define GROUP_ID ((uint)get_group_id(0))
#define GROUP_COUNT ((uint)get_num_groups(0))
#define RSQRT(x) rsqrt(x)
#define ABSOLUTE(x) fabs(x)
#define ARGS(name) (args.name)
#define ROW_OF(at) \
  ((at).offset + (size_t)outer * (at).stride0 + (size_t)middle * (at).stride1 + (size_t)inner * (at).stride2)
#define LOAD_X(i) load_scalar(x_elements, i)
#define LOAD_RESIDUAL(i) load_scalar(residual_elements, i)
#define LOAD_WEIGHT(i) load_any(weight, ARGS(norm.weight_offset) + (size_t)(i), (features & NORM_WIDE_WEIGHT) != 0u)
#define LOAD_BIAS(i) load_any(bias, ARGS(norm.bias_offset) + (size_t)(i), (features & NORM_WIDE_BIAS) != 0u)
#define STORE_SUM(value, i) store_scalar(value, sum_elements, i)
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_CODE(bits, i) store_byte(bits, y_elements, i)
#define SUM_LINE(x) sum_line(space, x)
#define LARGEST_LINE(x) largest_line(space, x)

INLINE float load_any(const global scalar* p, size_t i, bool wide) {
#if DTYPE != DTYPE_F32
  if (wide) return ((const global float*)p)[i];
#endif
  return load_scalar(p, i);
}

#define REDUCE_LINE(name, combine)                                      \
  INLINE float name(local float* space, float x) {                      \
    const uint item = get_local_id(0);                                  \
    space[item] = x;                                                    \
    for (uint width = WG_X / 2; width > 0; width /= 2) {                \
      barrier(CLK_LOCAL_MEM_FENCE);                                     \
      if (item < width) space[item] = combine(space[item], space[item + width]); \
    }                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    const float all = space[0];                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                       \
    return all;                                                         \
  }
#define PLUS(a, b) ((a) + (b))
REDUCE_LINE(sum_line, PLUS)
REDUCE_LINE(largest_line, fmax)

KERNEL void norm_quantised(const global scalar* restrict x_elements, const global scalar* restrict weight,
                           const global scalar* restrict bias, const global scalar* restrict residual_elements,
                           global uchar* restrict y_elements, global scalar* restrict sum_elements,
                           global float* restrict scales, const struct NormQuantisedArgs args) {
  local float space[WG_X];
#include "operations/norms/quantised/row.h"
}
