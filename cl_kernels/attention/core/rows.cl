// SPDX-License-Identifier: Apache-2.0
// What     The table of rows: which interval of keys each query row may see, its place and its segment.
// Who      Item (x): row x % q_len of batch x / q_len.
// Memory   16 bytes per row written; a binary search in cum_seqlens_q where sequences are packed.
// Numerics Whole numbers.
// Assumes  Lengths below 2^30.
#include "lib/prelude.clh"
#include "operations/attention_core/core/rows_args.h"

typedef struct {
  const struct AttentionRowsArgs* args;
  const global int *cu_q, *cu_k, *q_lengths, *kv_lengths, *segments, *positions;
} Operands;

#define ROWS_PARAMETERS const Operands *operands,
#define ARGS(name) (operands->args->name)
#define CU_Q_VALUE(n) (operands->cu_q[ARGS(cu_q_offset) + (n) * ARGS(cu_q_stride)])
#define CU_K_VALUE(n) (operands->cu_k[ARGS(cu_k_offset) + (n) * ARGS(cu_k_stride)])
#define Q_LENGTH_VALUE(b) (operands->q_lengths[ARGS(q_lengths_offset) + (b) * ARGS(q_lengths_stride)])
#define KV_LENGTH_VALUE(b) (operands->kv_lengths[ARGS(kv_lengths_offset) + (b) * ARGS(kv_lengths_stride)])
#define SEGMENT_VALUE(b, row) \
  (operands->segments[ARGS(segments_offset) + (b) * ARGS(segments_stride_batch) + (row) * ARGS(segments_stride_row)])
#define POSITION_VALUE(b, row)                                                    \
  (operands->positions[ARGS(positions_offset) + (b) * ARGS(positions_stride_batch) + \
                       (row) * ARGS(positions_stride_row)])
#include "operations/attention_core/core/rows.h"

KERNEL void attention_rows(global int4* restrict scratch, const global int* restrict cu_q,
                           const global int* restrict cu_k, const global int* restrict q_lengths,
                           const global int* restrict kv_lengths, const global int* restrict segments,
                           const global int* restrict positions, const struct AttentionRowsArgs args) {
  const Operands operands = {&args, cu_q, cu_k, q_lengths, kv_lengths, segments, positions};
  const uint row = get_global_id(0);
  if (row < args.batch * args.q_len)
    scratch[args.rows + row] = table_row(&operands, (int)(row / args.q_len), (int)(row % args.q_len));
}
