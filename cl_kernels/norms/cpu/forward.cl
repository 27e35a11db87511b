// SPDX-License-Identifier: Apache-2.0
// What     output = norm(x + residual) * weight + bias, and the sum; RMSNorm or LayerNorm over rows.
// Who      A work-group is one item and owns consecutive rows.
// Memory   x and residual once from memory, again from the first caches; outputs past the caches with NORM_STREAM.
// Numerics Float; the mean comes off before squares are summed. Four sums, then lanes, in one order.
// Assumes  Rows below 2^31, operands below 2^32 elements.
#include "norms/core/rows_cpu.clh"

KERNEL void norm_forward_cpu(const global scalar* restrict x, const global scalar* restrict weight,
                             const global scalar* restrict bias,
                             const global scalar* restrict residual, global scalar* restrict y,
                             global scalar* restrict sum, const struct NormForwardArgs a) {
  const uint features = a.features;
  const int dim = (int)a.dim;
  const bool stream = (features & NORM_STREAM) != 0;
  const bool wide_weight = (features & NORM_WIDE_WEIGHT) != 0, wide_bias = (features & NORM_WIDE_BIAS) != 0;
  const uint each = (a.rows + (uint)get_num_groups(0) - 1) / (uint)get_num_groups(0);
  const uint first = min((uint)get_group_id(0) * each, a.rows), last = min(first + each, a.rows);
  for (uint n = first; n < last; ++n) {
    const NormRow row = norm_row(x, a.x, residual, a.residual, features, a.rows1, a.rows2, n, dim);
    const NormRow next =
        norm_row(x, a.x, residual, a.residual, features, a.rows1, a.rows2, min(n + 1, a.rows - 1), dim);
    const float mean = (features & NORM_CENTERED) != 0 ? row_mean(row, a.mean_factor) : 0.0f;

    const float scale = row_scale(row, mean, a.mean_factor, a.epsilon);

    if ((features & NORM_SUM) != 0) {
      global scalar* to = sum + row_place(a.sum, a.rows1, a.rows2, n);
      int d = 0;
      for (; d + PAIR_WIDTH <= dim; d += PAIR_WIDTH) store_output_pair(row_pair(row, d), to + d, stream);
      for (; d < dim; d += VECTOR_WIDTH) store_output(row_part(row, d), to + d, dim - d, stream);
    }
    global scalar* to = y + row_place(a.y, a.rows1, a.rows2, n);
    int d = 0;
    for (; d + PAIR_WIDTH <= dim; d += PAIR_WIDTH) {
      ask_early_for_row(next, d);
      FloatPair x = row_pair(row, d);
      x.a = (x.a - mean) * scale;
      x.b = (x.b - mean) * scale;
      if ((features & NORM_WEIGHT) != 0) {
        const FloatPair w = load_any_pair(weight, a.weight_offset + d, wide_weight);
        x.a *= w.a;
        x.b *= w.b;
      }
      if ((features & NORM_BIAS) != 0) {
        const FloatPair w = load_any_pair(bias, a.bias_offset + d, wide_bias);
        x.a += w.a;
        x.b += w.b;
      }
      store_output_pair(x, to + d, stream);
    }
    for (; d < dim; d += VECTOR_WIDTH)
      store_output(weighed_part((row_part(row, d) - mean) * scale, weight, bias, &a, d), to + d, dim - d, stream);
  }
}
