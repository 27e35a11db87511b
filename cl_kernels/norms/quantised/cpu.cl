// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias in 8 bits, with the scale of each row, and the sum.
// Who      A work-group is one item and owns consecutive rows.
// Memory   x and residual once from memory, and twice or three times from the first caches.
// Numerics As norms/quantised/forward.cl; sums as norms/cpu/forward.cl.
// Assumes  Rows below 2^31, operands below 2^32 elements.
#include "norms/core/rows_cpu.clh"
#include "lib/cpu/codes.clh"
#include "operations/norms/quantised/args.h"

#define VALUE_AT(d) weighed_part((row_part(row, d) - mean) * scale, weight, bias, a, d)

KERNEL void norm_quantised_cpu(const global scalar* restrict x, const global scalar* restrict weight,
                               const global scalar* restrict bias, const global scalar* restrict residual,
                               global uchar* restrict y, global scalar* restrict sum, global float* restrict scales,
                               const struct NormQuantisedArgs args) {
  const struct NormForwardArgs* a = &args.norm;
  const int dim = (int)a->dim;
  const uint each = (a->rows + (uint)get_num_groups(0) - 1) / (uint)get_num_groups(0);
  const uint first = min((uint)get_group_id(0) * each, a->rows), last = min(first + each, a->rows);
  for (uint n = first; n < last; ++n) {
    const NormRow row = norm_row(x, a->x, residual, a->residual, a->features, a->rows1, a->rows2, n, dim);
    const float mean = (a->features & NORM_CENTERED) != 0 ? row_mean(row, a->mean_factor) : 0.0f;
    const float scale = row_scale(row, mean, a->mean_factor, a->epsilon);
    if ((a->features & NORM_SUM) != 0) {
      global scalar* to = sum + row_place(a->sum, a->rows1, a->rows2, n);
      for (int d = 0; d < dim; d += VECTOR_WIDTH) store_part(row_part(row, d), to + d, dim - d);
    }

    floatv most = (floatv)(0.0f);
    for (int d = 0; d < dim; d += VECTOR_WIDTH) {
      const floatv magnitude = part_of(fabs(VALUE_AT(d)), dim - d);
      most = magnitude > most ? magnitude : most;
    }
    const float largest = max(largest_of_lanes(most), 7.8886091e-31f);  // 2^-100, as every kernel of these has it
    scales[row_place(args.scale, a->rows1, a->rows2, n)] = largest / args.largest;
    const float inverse = args.largest / largest;
    const size_t to = row_place(a->y, a->rows1, a->rows2, n);
    for (int d = 0; d < dim; d += VECTOR_WIDTH)
      store_codes_part(codes_of_vector(VALUE_AT(d) * inverse, args.type, args.largest), y, to + d, dim - d, false);
  }
}
