// SPDX-License-Identifier: Apache-2.0
// What     Codes of 8 or 4 bits to floats: (code - zero point) scale.
// Who      A work-group is one item and owns consecutive blocks, a vector at a time.
// Memory   Codes and floats once.
// Numerics As quantised/codes/dequantise.cl.
// Assumes  Operands below 2^31 elements; a block is a part of one row.
#include "quantised/codes_cpu/blocks.clh"

KERNEL void codes_dequantise_cpu(const global uchar* restrict codes, const global float* restrict scales,
                                 const global uchar* restrict zeros, global void* restrict floats,
                                 const struct CodesArgs args) {
  EACH_BLOCK {
    BLOCK_PLACE
    const size_t from = CODES_AT(codes, row, column), to = CODES_AT(floats, row, column);
    const float scale = scales[CODES_AT(scale, row, group)];
    float zero = 0.0f;
    if (has_zeros) {
      const size_t at = CODES_AT(zero, row, group);
      zero = from_storage(type, is_packed ? load_half_byte(zeros, at) : load_byte(zeros, at));
    }
    for (int i = 0; i < width; i += VECTOR_WIDTH) {
      PREFETCH(codes + (is_packed ? (from + i) / 2 : from + i) + BLOCK_AHEAD);
      const floatv number = floats_of_codes(load_codes_part(codes, from + i, width - i, is_packed), type) - zero;
      store_typed_part(is_dynamic ? number / scale : number * scale, floats, to + i, 1, width - i, floats_type);
    }
  }
}
