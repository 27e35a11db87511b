// SPDX-License-Identifier: Apache-2.0
// What     norm_backward_cpu: gradients of RMSNorm and LayerNorm, and sums over this item's rows of what makes those of
//          weight and bias. norm_combine_cpu: sums of rows of floats in scratch, rounded.
// Who      A work-group is one item. Backward it owns consecutive rows, in the sum a row of the output.
// Memory   x, residual, grad_output once from memory, again from caches; the sums of weights stay in the second cache.
// Numerics Float; every sum has one order. With c = s - mean and r = 1 / sqrt(mean(c^2) + epsilon), mean(g n) = r mean(g c).
// Assumes  Rows below 2^31, operands below 2^32 elements; no item without rows.
#include "norms/core/rows_cpu.clh"

// Adds to `count` floats, or begins with them.
INLINE void add_part(floatv x, global float* sums, bool begin) {
  vstorev(begin ? x : vloadv(0, sums) + x, 0, sums);
}

// The same for a pair, in the order that its elements have.
INLINE void add_pair(floatv x, floatv y, global float* sums, bool begin) {
  add_part(x, sums, begin);
  add_part(y, sums + VECTOR_WIDTH, begin);
}

// Puts the sums of whole pairs in the order of their elements.
INLINE void order_pairs(global float* sums, int dim) {
#if PAIRS_ARE_WORDS
  for (int d = 0; d + PAIR_WIDTH <= dim; d += PAIR_WIDTH) {
    const FloatPair x = {vloadv(0, sums + d), vloadv(0, sums + d + VECTOR_WIDTH)};
    store_float_pair(x, sums + d);
  }
#endif
}

// The gradient of s, without dsum.
INLINE floatv gradient_of(floatv g, floatv normal, float level, float along, float scale) {
  return (g - level - normal * along) * scale;
}

KERNEL void norm_backward_cpu(const global scalar* restrict dy, const global scalar* restrict x,
                              const global scalar* restrict weight,
                              const global scalar* restrict residual,
                              const global scalar* restrict dsum, global scalar* restrict dx,
                              global scalar* restrict dresidual, global float* restrict scratch,
                              const struct NormBackwardArgs a) {
  const uint features = a.features, share = get_group_id(0);
  const int dim = (int)a.dim;
  const bool stream = (features & NORM_STREAM) != 0;
  const bool wide = (features & NORM_WIDE_WEIGHT) != 0;
  const uint each = (a.rows + (uint)get_num_groups(0) - 1) / (uint)get_num_groups(0);
  const uint first = share * each, last = min(first + each, a.rows);
  global float* weight_sums = scratch + (size_t)share * a.columns;
  global float* bias_sums = weight_sums + (size_t)a.shares * a.columns;
  for (uint n = first; n < last; ++n) {
    const uint after = min(n + 1, a.rows - 1);
    const NormRow row = norm_row(x, a.x, residual, a.residual, features, a.rows1, a.rows2, n, dim);
    const NormRow next = norm_row(x, a.x, residual, a.residual, features, a.rows1, a.rows2, after, dim);
    const global scalar* from = dy + row_place(a.dy, a.rows1, a.rows2, n);
    const global scalar* from_next = dy + row_place(a.dy, a.rows1, a.rows2, after);
    const float mean = (features & NORM_CENTERED) != 0 ? row_mean(row, a.mean_factor) : 0.0f;

    floatv squares[2] = {0.0f, 0.0f}, sum[2] = {0.0f, 0.0f}, product[2] = {0.0f, 0.0f};
    int d = 0;
    for (; d + PAIR_WIDTH <= dim; d += PAIR_WIDTH) {
      ask_for_row(row, d + NORM_AHEAD);
      ask_for_pair(from + d + NORM_AHEAD);
      const FloatPair s = row_pair(row, d);
      FloatPair g = load_pair(from + d);
      if ((features & NORM_WEIGHT) != 0) {
        const FloatPair w = load_any_pair(weight, a.weight_offset + d, wide);
        g.a *= w.a;
        g.b *= w.b;
      }
      squares[0] = fma(s.a - mean, s.a - mean, squares[0]);
      squares[1] = fma(s.b - mean, s.b - mean, squares[1]);
      sum[0] += g.a;
      sum[1] += g.b;
      product[0] = fma(g.a, s.a - mean, product[0]);
      product[1] = fma(g.b, s.b - mean, product[1]);
    }
    for (; d < dim; d += VECTOR_WIDTH) {
      const floatv c = part_of(row_part(row, d) - mean, dim - d);
      floatv g = load_part(from + d, dim - d);
      if ((features & NORM_WEIGHT) != 0) g *= load_any_part(weight, a.weight_offset + d, dim - d, wide);
      squares[0] = fma(c, c, squares[0]);
      sum[0] += g;
      product[0] = fma(g, c, product[0]);
    }
    const float scale = rsqrt(lanes_sum(squares[0] + squares[1]) * a.mean_factor + a.epsilon);
    const float along = lanes_sum(product[0] + product[1]) * a.mean_factor * scale;
    const float level = (features & NORM_CENTERED) != 0 ? lanes_sum(sum[0] + sum[1]) * a.mean_factor : 0.0f;

    const global scalar* more = dsum + row_place(a.dsum, a.rows1, a.rows2, n);
    global scalar* to = dx + row_place(a.dx, a.rows1, a.rows2, n);
    global scalar* to_residual = dresidual + row_place(a.dresidual, a.rows1, a.rows2, n);
    global float* kept = scratch + a.kept + (size_t)n * a.columns;
    for (d = 0; d + PAIR_WIDTH <= dim; d += PAIR_WIDTH) {
      ask_early_for_row(next, d);
      ask_early_for_pair(from_next + d);
      const FloatPair s = row_pair(row, d), before = load_pair(from + d);
      const FloatPair normal = {(s.a - mean) * scale, (s.b - mean) * scale};
      FloatPair g = before;
      if ((features & NORM_WEIGHT) != 0) {
        const FloatPair w = load_any_pair(weight, a.weight_offset + d, wide);
        g.a *= w.a;
        g.b *= w.b;
      }
      g.a = gradient_of(g.a, normal.a, level, along, scale);
      g.b = gradient_of(g.b, normal.b, level, along, scale);
      if ((features & NORM_SUM) != 0) {
        const FloatPair x = load_pair(more + d);
        g.a += x.a;
        g.b += x.b;
      }
      store_output_pair(g, to + d, stream);
      if ((features & NORM_GRAD_RESIDUAL) != 0) store_output_pair(g, to_residual + d, stream);
      if ((features & NORM_KEEP_GRADIENT) != 0) store_float_pair(g, kept + d);
      if ((features & NORM_GRAD_WEIGHT) != 0)
        add_pair(before.a * normal.a, before.b * normal.b, weight_sums + d, n == first);
      if ((features & NORM_GRAD_BIAS) != 0) add_pair(before.a, before.b, bias_sums + d, n == first);
    }
    for (; d < dim; d += VECTOR_WIDTH) {
      const floatv normal = part_of(row_part(row, d) - mean, dim - d) * scale;
      const floatv before = load_part(from + d, dim - d);
      floatv g = before;
      if ((features & NORM_WEIGHT) != 0) g *= load_any_part(weight, a.weight_offset + d, dim - d, wide);
      g = gradient_of(g, normal, level, along, scale);
      if ((features & NORM_SUM) != 0) g += load_part(more + d, dim - d);
      store_output(g, to + d, dim - d, stream);
      if ((features & NORM_GRAD_RESIDUAL) != 0) store_output(g, to_residual + d, dim - d, stream);
      if ((features & NORM_KEEP_GRADIENT) != 0) vstorev(g, 0, kept + d);
      if ((features & NORM_GRAD_WEIGHT) != 0) add_part(before * normal, weight_sums + d, n == first);
      if ((features & NORM_GRAD_BIAS) != 0) add_part(before, bias_sums + d, n == first);
    }
  }
  if ((features & NORM_GRAD_WEIGHT) != 0) order_pairs(weight_sums, dim);
  if ((features & NORM_GRAD_BIAS) != 0) order_pairs(bias_sums, dim);
}

KERNEL void norm_combine_cpu(const global float* restrict scratch, global scalar* restrict result,
                             const struct NormCombineArgs a) {
  for (uint row = get_group_id(0); row < a.rows; row += get_num_groups(0)) {
    const size_t outer = row / a.inner, inner = row % a.inner;
    const size_t first = outer * a.outer_rows + inner * a.inner_rows;
    const size_t to = a.offset + outer * a.stride0 + inner * a.stride1;
    for (uint d = 0; d < a.dim; d += VECTOR_WIDTH) {
      floatv sum = 0.0f;
      for (uint n = 0; n < a.count; ++n) {
        const size_t term = first + (size_t)(n / a.repeats) * a.step0 + (size_t)(n % a.repeats) * a.step1;
        sum += vloadv(0, scratch + a.from + term * a.columns + d);
      }
      const int left = (int)(a.dim - d);
#if DTYPE != DTYPE_F32
      if (a.wide != 0) {
        float part[VECTOR_WIDTH];
        vstorev(sum, 0, part);
        for (int i = 0; i < min(left, VECTOR_WIDTH); ++i) ((global float*)result)[to + d + i] = part[i];
        continue;
      }
#endif
      store_part(sum, result + to + d, left);
    }
  }
}
