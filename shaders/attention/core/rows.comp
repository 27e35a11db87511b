// SPDX-License-Identifier: Apache-2.0
// What     The table of rows: which keys each query row may see, its place and its segment.
// Who      Item (x): row x % q_len of batch x / q_len.
// Memory   16 bytes per row written; a binary search in cum_seqlens_q where sequences are packed.
// Numerics Whole numbers.
// Assumes  Lengths below 2^30.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/rows_args.h"

layout(std430, binding = 0) writeonly buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer CuQ { int cu_q[]; };
layout(std430, binding = 2) readonly buffer CuK { int cu_k[]; };
layout(std430, binding = 3) readonly buffer QLengths { int q_lengths[]; };
layout(std430, binding = 4) readonly buffer KvLengths { int kv_lengths[]; };
layout(std430, binding = 5) readonly buffer Segments { int segments[]; };
layout(std430, binding = 6) readonly buffer Positions { int positions[]; };
PUSH_ARGS(AttentionRowsArgs);

#define ROWS_PARAMETERS
#define ARGS(name) (args.name)
#define CU_Q_VALUE(n) (cu_q[args.cu_q_offset + uint(n) * args.cu_q_stride])
#define CU_K_VALUE(n) (cu_k[args.cu_k_offset + uint(n) * args.cu_k_stride])
#define Q_LENGTH_VALUE(b) (q_lengths[args.q_lengths_offset + uint(b) * args.q_lengths_stride])
#define KV_LENGTH_VALUE(b) (kv_lengths[args.kv_lengths_offset + uint(b) * args.kv_lengths_stride])
#define SEGMENT_VALUE(b, row)                                             \
  (segments[args.segments_offset + uint(b) * args.segments_stride_batch + \
            uint(row) * args.segments_stride_row])
#define POSITION_VALUE(b, row)                                               \
  (positions[args.positions_offset + uint(b) * args.positions_stride_batch + \
             uint(row) * args.positions_stride_row])
#include "operations/attention_core/core/rows.h"

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row < args.batch * args.q_len)
    scratch[args.rows + row] = table_row(int(row / args.q_len), int(row % args.q_len));
}
