// SPDX-License-Identifier: Apache-2.0
// What     Around attention/cpu_backward. delta[i] = sum_d do[i,d] o[i,d]; dq = scale * the sum of its partial sums.
// Who      A work-group is one item. It owns CPU_ROW_BLOCK rows of one (batch, head).
// Memory   o, do, partial sums once; delta, dq once.
// Numerics Float; splits in order; one rounding.
// Assumes  Contiguous features.
#include "attention/cpu_rows.clh"
#include "operations/attention/backward_args.h"
#include "operations/attention/cpu_backward.h"

KERNEL void attention_backward_delta_cpu(const global scalar* restrict output,
                                         const global scalar* restrict output_gradient,
                                         global float* restrict scratch,
                                         const struct AttentionBackwardCall call) {
  const struct AttentionArgs a = call.core;
  const struct AttentionGradientArgs g = call.gradient;
  const size_t head = get_group_id(1), batch = get_group_id(2);
  const Rows outputs = {output + a.o_offset + batch * a.o_stride_batch + head * a.o_stride_head, a.o_stride_row};
  const Rows gradients = {output_gradient + g.do_offset + batch * g.do_stride_batch + head * g.do_stride_head,
                          g.do_stride_row};
  global float* delta = scratch + g.delta + (batch * a.heads + head) * a.q_len;
  const int first = get_group_id(0) * CPU_ROW_BLOCK, end = min((int)a.q_len, first + CPU_ROW_BLOCK);
  for (int row = first; row < end; ++row) {
    floatv sum = 0.0f;
    for (int d = 0; d < VALUE_DIM; d += VECTOR_WIDTH)
      sum = fma(load_part(row_of(outputs, row) + d, VALUE_DIM - d),
                load_part(row_of(gradients, row) + d, VALUE_DIM - d), sum);
    float lanes[VECTOR_WIDTH], total = 0.0f;
    vstorev(sum, 0, lanes);
    for (int i = 0; i < VECTOR_WIDTH; ++i) total += lanes[i];
    delta[row] = total;
  }
}

KERNEL void attention_backward_reduce_cpu(const global float* restrict scratch, global scalar* restrict dq,
                                          const struct AttentionBackwardCall call) {
  const struct AttentionArgs a = call.core;
  const struct AttentionGradientArgs g = call.gradient;
  const size_t head = get_group_id(1), batch = get_group_id(2), batches = get_num_groups(2);
  const size_t head_size = CPU_PARTIAL_ROWS((size_t)a.q_len) * DQ_WIDTH * VECTOR_WIDTH;
  const size_t split_size = batches * a.heads * head_size;
  const global float* partial = scratch + g.partials + (batch * a.heads + head) * head_size;
  dq += g.dq_offset + batch * g.dq_stride_batch + head * g.dq_stride_head;
  const uint first = get_group_id(0) * CPU_ROW_BLOCK, end = min(a.q_len, first + CPU_ROW_BLOCK);
  for (uint row = first; row < end; ++row) {
    for (int d = 0; d < HEAD_DIM; d += VECTOR_WIDTH) {
      const global float* at = partial + (size_t)row * DQ_WIDTH * VECTOR_WIDTH + d;
      floatv sum = vloadv(0, at);
      for (uint split = 1; split < a.splits; ++split) sum += vloadv(0, at + split * split_size);
      store_part(sum * a.scale, dq + (size_t)row * g.dq_stride_row + d, HEAD_DIM - d);
    }
  }
}
