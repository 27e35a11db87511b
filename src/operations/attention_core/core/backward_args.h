// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the attention backward kernels.
#ifndef TESSERA_OPERATIONS_ATTENTION_BACKWARD_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_BACKWARD_ARGS_H
#include "operations/attention_core/core/policy_args.h"
TESSERA_ABI_BEGIN

// do is the gradient of the output; dq, dk and dv are those of query, key and value. Where in the
// scratch buffer something begins is counted in floats.
struct AttentionGradientArgs {
  u32 delta;     // [batch, heads, q_len]: sum over d of do[i,d] o[i,d]
  u32 partials;  // the kernels' own partial sums
  u32 peaks;     // [batch, heads, q_len], in entries of four ints: see attention/core/peaks.cl;
                 // where weights aren't divided by their sum, there are biases, slopes or
                 // gradients of sinks
  u32 ds;        // [batch, heads, q_len, kv_len]: gradient of every bias element
  u32 write_ds;  // 1 = ds is wanted
  u32 do_offset;
  u32 do_stride_batch;
  u32 do_stride_row;
  u32 do_stride_head;
  u32 dq_offset;
  u32 dq_stride_batch;
  u32 dq_stride_row;
  u32 dq_stride_head;
  u32 dk_offset;
  u32 dk_stride_batch;
  u32 dk_stride_row;
  u32 dk_stride_head;
  u32 dv_offset;
  u32 dv_stride_batch;
  u32 dv_stride_row;
  u32 dv_stride_head;
};

// policy counts only for kernels with POLICY=1.
struct AttentionBackwardCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionPolicyArgs) policy;
  STRUCT(AttentionGradientArgs) gradient;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_BACKWARD_ARGS_H
