// SPDX-License-Identifier: Apache-2.0
// What     Tensor maps of q, k, v and do, which Hopper's copies read, and all counters at 0.
// Who      Items t < 4 make the map of one tensor; all items clear counters.
// Memory   4 x 128 bytes, made in local memory and copied to scratch.
// Numerics None.
// Assumes  sm_90a (ptx_promotion.hpp); offsets and strides are multiples of 8 elements.
#include "lib/prelude.clh"
#include "operations/attention_core/hopper/backward_args.h"
#include "operations/attention_core/hopper/backward.h"
#include "lib/hopper/tensor_map.clh"

KERNEL void attention_hopper_backward_maps(const global scalar* q, const global scalar* k,
                                           const global scalar* v, const global scalar* gradient,
                                           global uint* restrict all_scratch,
                                           const struct HopperBackwardCall a) {
  local uint maps[4 * HOPPER_MAP_BYTES / 4] __attribute__((aligned(128)));
  global uint* scratch = all_scratch + a.gradient.partials;
  const uint item = get_global_id(0);
  for (uint i = ATTN_HOPPER_BACKWARD_COUNTER / 4 + item; i < a.dq - a.gradient.partials;
       i += get_global_size(0))
    scratch[i] = 0;
  if (item >= 4) return;
  const bool is_query = item == 0, is_key = item == 1, is_value = item == 2;
  const bool is_keys = is_key || is_value;
  const uint by_row = is_query   ? a.core.q_stride_row
                      : is_key   ? a.core.k_stride_row
                      : is_value ? a.core.v_stride_row
                                 : a.gradient.do_stride_row;
  TensorMap tensor;
  tensor.element = sizeof(scalar);
  tensor.short_boxes = 0;
  tensor.start = (is_query   ? q + a.core.q_offset
                  : is_key   ? k + a.core.k_offset
                  : is_value ? v + a.core.v_offset
                             : gradient + a.gradient.do_offset) +
                 (size_t)(is_keys ? a.first_key : a.first_row) * by_row;
  tensor.columns = is_query || is_key ? a.head_dim : a.value_dim;
  tensor.heads = is_keys ? a.core.heads / a.core.group : a.core.heads;
  tensor.rows = is_keys ? a.keys : a.rows;
  tensor.batch = a.batch;
  tensor.by_head = is_query   ? a.core.q_stride_head
                   : is_key   ? a.core.k_stride_head
                   : is_value ? a.core.v_stride_head
                              : a.gradient.do_stride_head;
  tensor.by_row = by_row;
  tensor.by_batch = is_query   ? a.core.q_stride_batch
                    : is_key   ? a.core.k_stride_batch
                    : is_value ? a.core.v_stride_batch
                               : a.gradient.do_stride_batch;
  tensor.box_rows = is_keys ? ATTN_BLOCK_K : BLOCK_Q;
  make_tensor_map(&tensor, LOCAL_ADDRESS(maps) + item * HOPPER_MAP_BYTES,
           scratch + item * HOPPER_MAP_BYTES / 4);
}
