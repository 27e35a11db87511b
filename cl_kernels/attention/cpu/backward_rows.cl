// SPDX-License-Identifier: Apache-2.0
// What     Around attention/cpu/backward. Before it, packs rows of q and do, which every block of keys reads, as floats
//          one after another, and makes delta[i] = sum_d do[i,d] o[i,d]; after it, dq = scale * the sum of its partial sums.
// Who      A work-group is one item. It owns ATTN_CPU_ROW_BLOCK rows of one (batch, head).
// Memory   q, o, do, partial sums once; packed rows, delta, dq once.
// Numerics Float; splits in order; one rounding.
// Assumes  Contiguous features.
#include "lib/cpu/panels.clh"
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/cpu/backward.h"

// Rows of one head may be far apart: the row this many rows ahead is asked for.
#define ROWS_SOON 12

INLINE void prefetch_row(PanelRows rows, int row, int last, int features) {
  for (int d = 0; d < features; d += VECTOR_WIDTH) PREFETCH(panel_row(rows, min(row + ROWS_SOON, last)) + d);
}

// The features of a row as floats; zeros, or a NaN where one is not finite.
INLINE floatv pack_row(const global scalar* row, int features, global float* to) {
  floatv wild = 0.0f;
  for (int d = 0; d < features; d += VECTOR_WIDTH) {
    const floatv x = load_part(row + d, features - d);
    stream_vector(x, to + d);
    wild = fma(x, (floatv)(0.0f), wild);
  }
  return wild;
}

INLINE void clear_row(global float* to) {
  for (int d = 0; d < ATTN_PACKED_WILD; d += VECTOR_WIDTH) vstorev((floatv)(0.0f), 0, to + d);
}

KERNEL void attention_backward_pack_cpu(const global scalar* restrict query, const global scalar* restrict output,
                                        const global scalar* restrict output_gradient,
                                        const global float* restrict log_sum_exp, global float* restrict scratch,
                                        const struct AttentionBackwardCall call) {
  const struct AttentionArgs a = call.core;
  const struct AttentionGradientArgs g = call.gradient;
  const size_t head = get_group_id(1), batch = get_group_id(2), line = batch * a.heads + head;
  const PanelRows queries = {query + a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head, a.q_stride_row};
  const PanelRows outputs = {output + a.o_offset + batch * a.o_stride_batch + head * a.o_stride_head, a.o_stride_row};
  const PanelRows gradients = {output_gradient + g.do_offset + batch * g.do_stride_batch + head * g.do_stride_head,
                          g.do_stride_row};
  const global float* lse = log_sum_exp + a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head;
  global float* delta = scratch + g.delta + line * a.q_len;
  global float* packed = scratch + g.partials + line * ATTN_CPU_PADDED_ROWS((size_t)a.q_len) * ATTN_PACKED_STRIDE;
  const int q_len = a.q_len, first = get_group_id(0) * ATTN_CPU_ROW_BLOCK, end = min(q_len, first + ATTN_CPU_ROW_BLOCK);
  for (int row = first; row < end; ++row) {
    prefetch_row(queries, row, q_len - 1, HEAD_DIM);
    prefetch_row(outputs, row, q_len - 1, VALUE_DIM);
    prefetch_row(gradients, row, q_len - 1, VALUE_DIM);
    global float* to = packed + (size_t)row * ATTN_PACKED_STRIDE;
    float wild = 0.0f;
    if (lse[row] == -INFINITY) {  // sees nothing: q and do may be anything, and 0 * NaN is NaN
      clear_row(to);
    } else {
      const floatv not_finite = pack_row(panel_row(queries, row), HEAD_DIM, to) +
                                pack_row(panel_row(gradients, row), VALUE_DIM, to + ATTN_PACKED_GRADIENT);
      if (any(not_finite != not_finite)) wild = NAN;
    }
    to[ATTN_PACKED_WILD] = wild;
    floatv sum = 0.0f;
    for (int d = 0; d < VALUE_DIM; d += VECTOR_WIDTH) {
      const floatv o = load_part(panel_row(outputs, row) + d, VALUE_DIM - d);
      sum = fma(o, load_part(panel_row(gradients, row) + d, VALUE_DIM - d), sum);
    }
    float lanes[VECTOR_WIDTH], total = 0.0f;
    vstorev(sum, 0, lanes);
    for (int i = 0; i < VECTOR_WIDTH; ++i) total += lanes[i];
    delta[row] = total;
  }
  if (end == q_len)  // what is left of the last tile
    for (int row = end; row < ATTN_CPU_ROUND_UP(end, QUERY_ROWS); ++row)
      clear_row(packed + (size_t)row * ATTN_PACKED_STRIDE);
}

KERNEL void attention_backward_reduce_cpu(const global float* restrict scratch, global scalar* restrict dq,
                                          const struct AttentionBackwardCall call) {
  const struct AttentionArgs a = call.core;
  const struct AttentionGradientArgs g = call.gradient;
  const size_t head = get_group_id(1), batch = get_group_id(2), batches = get_num_groups(2);
  const size_t head_size = ATTN_CPU_PADDED_ROWS((size_t)a.q_len) * ATTN_DQ_WIDTH * VECTOR_WIDTH;
  const size_t split_size = batches * a.heads * head_size;
  const global float* partial = scratch + g.partials + ATTN_CPU_PACKED_FLOATS(batches, a.heads, (size_t)a.q_len) +
                                (batch * a.heads + head) * head_size;
  dq += g.dq_offset + batch * g.dq_stride_batch + head * g.dq_stride_head;
  const uint first = get_group_id(0) * ATTN_CPU_ROW_BLOCK, end = min(a.q_len, first + ATTN_CPU_ROW_BLOCK);
  for (uint row = first; row < end; ++row) {
    for (int d = 0; d < HEAD_DIM; d += VECTOR_WIDTH) {
      const global float* at = partial + (size_t)row * ATTN_DQ_WIDTH * VECTOR_WIDTH + d;
      floatv sum = vloadv(0, at);
      for (uint split = 1; split < a.splits; ++split) sum += vloadv(0, at + split * split_size);
      stream_part(sum * a.scale, dq + (size_t)row * g.dq_stride_row + d, HEAD_DIM - d);
    }
  }
}
