// SPDX-License-Identifier: Apache-2.0
// What     Tensor maps of q, k, v and o, which Hopper's copies read, and a counter at 0.
// Who      One group; item t < 4 makes the map of one tensor.
// Memory   4 x 128 bytes, made in local memory and copied to scratch.
// Numerics None.
//          With PAGED=1 the rows of k and v are those of a page, and the batch is the pool.
// Assumes  sm_90a (ptx_promotion.hpp); offsets and strides are multiples of 8 elements.
#include "lib/prelude.clh"
#include "attention/hopper/call.clh"
#include "lib/hopper/tensor_map.clh"

KERNEL void attention_hopper_maps(const global scalar* q, const global scalar* k,
                                  const global scalar* v, const global scalar* output,
                                  global uint* restrict scratch, HOPPER_CALL) {
  HOPPER_ARGUMENTS
  local uint maps[4 * HOPPER_MAP_BYTES / 4] __attribute__((aligned(128)));
  const uint item = get_local_id(0);
  if (item >= 4) return;
  global uint* to = scratch + (size_t)a.maps * (HOPPER_ALIGNMENT / 4);
  const bool is_query = item == 0, is_key = item == 1, is_value = item == 2;
  const bool is_keys = is_key || is_value;
  const size_t skipped =
      is_key ? (size_t)a.first_key * a.core.k_stride_row
             : is_value ? (size_t)a.first_key * a.core.v_stride_row : 0;
  TensorMap tensor;
  tensor.element = sizeof(scalar);
  tensor.short_boxes = 0;
  tensor.start = is_query   ? q + a.core.q_offset
                 : is_key   ? k + a.core.k_offset + skipped
                 : is_value ? v + a.core.v_offset + skipped
                            : output + a.core.o_offset;
  tensor.columns = is_query || is_key ? a.head_dim : a.value_dim;
  tensor.heads = is_keys ? a.core.heads / a.core.group : a.core.heads;
  tensor.rows = is_keys ? a.keys : a.core.q_len;
  tensor.batch = a.batch;
  tensor.by_head = is_query   ? a.core.q_stride_head
                   : is_key   ? a.core.k_stride_head
                   : is_value ? a.core.v_stride_head
                              : a.core.o_stride_head;
  tensor.by_row = is_query   ? a.core.q_stride_row
                  : is_key   ? a.core.k_stride_row
                  : is_value ? a.core.v_stride_row
                             : a.core.o_stride_row;
  tensor.by_batch = is_query   ? a.core.q_stride_batch
                    : is_key   ? a.core.k_stride_batch
                    : is_value ? a.core.v_stride_batch
                               : a.core.o_stride_batch;
#if PAGED
  if (is_keys) tensor.rows = paged.pages.page_size, tensor.batch = paged.pages.pages;
#endif
  tensor.box_rows = is_keys ? BOX_KEYS : 64;
  make_tensor_map(&tensor, LOCAL_ADDRESS(maps) + item * HOPPER_MAP_BYTES,
           to + item * HOPPER_MAP_BYTES / 4);
  if (item == 0) to[HOPPER_COUNTER / 4] = 0;
}
