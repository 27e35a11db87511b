// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the attention kernels: an OpenCL by-value struct, a GLSL block.
#ifndef TESSERA_OPERATIONS_ATTENTION_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_ARGS_H
#include "abi/shared.h"
TESSERA_ABI_BEGIN

// Offsets and strides count elements; the feature axis is contiguous. Where nothing but a causal
// mask or a window hides keys, query row i sees key row j when band_low <= j - i <= band_high;
// their alignment is in the band. Else policy_args.h applies, and the table of rows holds the band.
struct AttentionArgs {
  u32 q_len;      // query rows per (batch, head)
  u32 kv_len;     // key rows per (batch, kv head)
  u32 heads;      // query heads
  u32 group;      // query heads per key/value head
  u32 write_lse;  // 1 = log_sum_exp is an output of this call
  i32 band_low;   // INDEX_MIN = no lower bound
  i32 band_high;  // INDEX_MAX = no upper bound
  f32 scale;      // of the logits, natural units
  f32 soft_cap;   // 0 = none; else logits become cap * tanh(logit / cap)
  u32 pack;       // query heads whose rows share a work-group: 1 or group
  u32 splits;     // work-groups that share the keys of a row; more than 1 write partial results
  u32 partials;   // where those begin in the scratch buffer, in floats
  u32 q_offset;
  u32 q_stride_batch;
  u32 q_stride_row;
  u32 q_stride_head;
  u32 k_offset;
  u32 k_stride_batch;
  u32 k_stride_row;
  u32 k_stride_head;
  u32 v_offset;
  u32 v_stride_batch;
  u32 v_stride_row;
  u32 v_stride_head;
  u32 o_offset;
  u32 o_stride_batch;
  u32 o_stride_row;
  u32 o_stride_head;
  u32 lse_offset;  // log_sum_exp is [batch, heads, q_len], float
  u32 lse_stride_batch;
  u32 lse_stride_head;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_ARGS_H
