// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of attention/core/bias_gradient and attention/core/sink_gradient.
#ifndef TESSERA_OPERATIONS_ATTENTION_BIAS_GRADIENT_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_BIAS_GRADIENT_ARGS_H
#include "abi/shared.h"

// A lane adds up so many terms before it adds their sum to the rest: rounding errors grow with the
// larger of the two counts, not with their product.
#define REDUCTION_RUN 256u

TESSERA_ABI_BEGIN

// Each axis of the output divides the axis of ds: entry n of it is the sum of entries
// n * ratio to (n + 1) * ratio - 1, where ratio is 1 or, where the bias was broadcast, more.
struct AttentionBiasGradientArgs {
  u32 ds;  // [batch, heads, q_len, kv_len], where it begins in the scratch buffer, in floats
  u32 heads;
  u32 q_len;
  u32 kv_len;
  u32 out_batch;
  u32 out_heads;
  u32 out_rows;
  u32 out_keys;
  u32 batch_ratio;
  u32 head_ratio;
  u32 row_ratio;
  u32 key_ratio;
  u32 offset;  // of the output, in its elements, as are the strides
  u32 stride_batch;
  u32 stride_head;
  u32 stride_row;
  u32 stride_key;
  u32 wide;   // 1 = the output is float, not the storage type
  u32 lanes;  // items that share an element of the output; divides WG_X
};

struct AttentionSinkGradientArgs {
  u32 delta;      // [batch, heads, q_len], where it begins in the scratch buffer, in floats
  u32 peaks;      // of AttentionGradientArgs
  u32 normalize;  // 1 = weights are divided by their sum
  u32 batch;
  u32 heads;
  u32 q_len;
  u32 kv_len;
  u32 group;  // query heads that share the sinks of one head
  u32 wide;   // 1 = sinks and their gradient are float, not the storage type
  u32 sinks_offset;
  u32 sinks_stride_head;
  u32 sinks_stride;
  u32 offset;  // of the gradient
  u32 stride_head;
  u32 stride;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_BIAS_GRADIENT_ARGS_H
