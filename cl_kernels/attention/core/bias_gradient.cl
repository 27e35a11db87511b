// SPDX-License-Identifier: Apache-2.0
// What     Gradient of a bias: gradients of the bias elements, summed over what was broadcast.
// Who      Item: one of `lanes` that share an element of the output; a group takes blocks of
//          WG_X / lanes elements, get_num_groups(0) blocks apart.
// Memory   ds once. Neighbours read neighbouring keys: items of one element if keys are summed,
//          else items of neighbouring elements.
// Numerics Float; a lane takes every lanes-th term in order, in runs; lanes in order; one rounding.
// Assumes  lanes divides WG_X; the output has below 2^32 - WG_X elements.
#include "lib/prelude.clh"
#include "operations/attention_core/core/bias_gradient_args.h"

KERNEL void attention_bias_gradient(const global float* restrict scratch,
                                    global void* restrict bias_gradient,
                                    const struct AttentionBiasGradientArgs a) {
  local float partial[WG_X];
  const uint item = get_local_id(0), columns = WG_X / a.lanes;
  const uint lane = a.key_ratio > 1 ? item % a.lanes : item / columns;
  const uint column = a.key_ratio > 1 ? item / a.lanes : item % columns;
  const uint elements = a.out_batch * a.out_heads * a.out_rows * a.out_keys;
  const uint blocks = (elements + columns - 1) / columns;
  const uint terms = a.batch_ratio * a.head_ratio * a.row_ratio * a.key_ratio;

  for (uint block = get_group_id(0); UNIFORM(block < blocks); block += get_num_groups(0)) {
    const uint element = block * columns + column;
    const uint key = element % a.out_keys, row = element / a.out_keys % a.out_rows;
    const uint line = element / a.out_keys / a.out_rows;
    const uint head = line % a.out_heads, batch = line / a.out_heads;
    float sum = 0.0f;
    if (element < elements) {
      for (uint term = lane; term < terms;) {
        float run = 0.0f;
        for (uint n = 0; n < REDUCTION_RUN && term < terms; ++n, term += a.lanes) {
          const uint k = key * a.key_ratio + term % a.key_ratio;
          const uint up = term / a.key_ratio;
          const uint i = row * a.row_ratio + up % a.row_ratio;
          const uint further = up / a.row_ratio;
          const uint h = head * a.head_ratio + further % a.head_ratio;
          const size_t b = batch * a.batch_ratio + further / a.head_ratio;
          run += scratch[a.ds + ((b * a.heads + h) * a.q_len + i) * a.kv_len + k];
        }
        sum += run;
      }
    }
    partial[lane * columns + column] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0 && element < elements) {
      for (uint i = 1; i < a.lanes; ++i) sum += partial[i * columns + column];
      const size_t to = a.offset + (size_t)batch * a.stride_batch + (size_t)head * a.stride_head +
                        (size_t)row * a.stride_row + (size_t)key * a.stride_key;
      if (a.wide) {
        ((global float*)bias_gradient)[to] = sum;
      } else {
        store_scalar(sum, (global scalar*)bias_gradient, to);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
