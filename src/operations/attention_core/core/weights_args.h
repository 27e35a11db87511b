// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of attention/core/weights.
#ifndef TESSERA_OPERATIONS_ATTENTION_WEIGHTS_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_WEIGHTS_ARGS_H
#include "operations/attention_core/core/policy_args.h"
TESSERA_ABI_BEGIN

// weights is [batch, heads, q_len, kv_len] with a contiguous last axis. A work-group has
// ATTN_WEIGHTS_ROWS of its rows, by fours, and as many features of queries in local memory at once.
#define ATTN_WEIGHTS_FOURS 4
#define ATTN_WEIGHTS_ROWS (4 * ATTN_WEIGHTS_FOURS)
#define ATTN_WEIGHTS_FEATURES 32

struct AttentionWeightsCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionPolicyArgs) policy;
  u32 head_dim;
  u32 w_offset;
  u32 w_stride_batch;
  u32 w_stride_head;
  u32 w_stride_row;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_WEIGHTS_ARGS_H
