// SPDX-License-Identifier: Apache-2.0
// What     Floats to codes of 8 or 4 bits, with a scale, and a zero point where codes have no sign, for each block.
// Who      A work-group is one item and owns consecutive blocks, a vector at a time.
// Memory   Floats twice, the second time from a cache; codes once.
// Numerics As quantised/codes/quantise.cl.
// Assumes  Operands below 2^31 elements; a block is a part of one row.
#include "quantised/codes_cpu/blocks.clh"

KERNEL void codes_quantise_cpu(const global void* restrict floats, global uchar* restrict codes,
                               global float* restrict scales, global uchar* restrict zeros,
                               const struct CodesArgs args) {
  EACH_BLOCK {
    BLOCK_PLACE
    const size_t from = CODES_AT(floats, row, column), to = CODES_AT(codes, row, column);
    const uint bytes = floats_type == DTYPE_F32 ? 4 : 2;
    const bool is_unsigned = codes_are_unsigned(type);
    floatv below = (floatv)(0.0f), above = below;
    for (int i = 0; i < width; i += VECTOR_WIDTH) {
      PREFETCH((const global uchar*)floats + (from + i) * bytes + BLOCK_AHEAD);
      const floatv x = load_typed_part(floats, from + i, 1, width - i, floats_type);
      const floatv y = is_unsigned ? x : fabs(x);
      if (is_unsigned) below = -x > below ? -x : below;
      above = y > above ? y : above;
    }
    const float least = is_unsigned ? -largest_of_lanes(below) : 0.0f, most = largest_of_lanes(above);
    const float scale = scale_of_codes(type, is_dynamic, least, most, ARGS(largest));
    const int zero = is_unsigned ? to_integer(-least / scale, 0.0f, ARGS(largest)) : 0;
    scales[CODES_AT(scale, row, group)] = scale;
    if (has_zeros) {
      const size_t at = CODES_AT(zero, row, group);
      if (is_packed) {
        store_half_byte((uint)zero, zeros, at);
      } else {
        store_byte((uint)zero, zeros, at);
      }
    }
    for (int i = 0; i < width; i += VECTOR_WIDTH) {
      const floatv x = load_typed_part(floats, from + i, 1, width - i, floats_type);
      const floatv number = is_dynamic ? x * scale : x / scale;
      ucharv some;
      if (is_unsigned) {
        const intv integer = as_intv(narrow_integers(number, -ARGS(largest), ARGS(largest))) + zero;
        some = convert_ucharv(as_uintv(clamp(integer, (intv)(0), (intv)((int)ARGS(largest)))));
      } else {
        some = codes_of_vector(number, type, ARGS(largest));
      }
      store_codes_part(some, codes, to + i, width - i, is_packed);
    }
  }
}
