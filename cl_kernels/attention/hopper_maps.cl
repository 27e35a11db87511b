// SPDX-License-Identifier: Apache-2.0
// What     Tensor maps of q, k, v and o, which Hopper's copies read, and a counter at 0.
// Who      One group; item t < 4 makes the map of one tensor.
// Memory   4 x 128 bytes, made in local memory and copied to scratch.
// Numerics None.
// Assumes  sm_90a (ptx_promotion.hpp); offsets and strides are multiples of 8 elements.
//
// A map has axes column, head, row, batch, and boxes of 64 columns x some rows of one head. Boxes
// may reach over its ends: copies read zeros there, and write nothing. So tails need no code, and
// dims below 64 or 128 are padded on the way. Maps are made by documented instructions on zeros.
#include "lib/prelude.clh"
#include "lib/hopper.clh"
#include "operations/attention/hopper_args.h"

#define REPLACE32(field, axis, value)                                                       \
  asm volatile("//@ tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " axis "%1;" \
               ::"r"(map), "r"(value)                                                       \
               : "memory")
#define REPLACE64(field, axis, value)                                                       \
  asm volatile("//@ tensormap.replace.tile." field ".shared::cta.b1024.b64 [%0], " axis "%1;" \
               ::"r"(map), "l"(value)                                                       \
               : "memory")
#define REPLACE_CODE(field, code)                                                             \
  asm volatile("//@ tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " code ";" \
               ::"r"(map)                                                                     \
               : "memory")

// An axis of one element may have any stride; the map wants a multiple of 16 bytes.
INLINE ulong stride_bytes(uint extent, uint stride) { return extent > 1 ? 2ul * stride : 128ul; }

KERNEL void attention_hopper_maps(const global scalar* q, const global scalar* k,
                                  const global scalar* v, const global scalar* output,
                                  global uint* restrict scratch, const struct HopperCall a) {
  local uint maps[4 * HOPPER_MAP_BYTES / 4] __attribute__((aligned(128)));
  const uint item = get_local_id(0);
  if (item >= 4) return;
  global uint* to = scratch + (size_t)a.maps * (HOPPER_ALIGNMENT / 4);
  const bool is_query = item == 0, is_key = item == 1, is_value = item == 2;
  const bool is_keys = is_key || is_value;
  const size_t skipped =
      is_key ? (size_t)a.first_key * a.core.k_stride_row
             : is_value ? (size_t)a.first_key * a.core.v_stride_row : 0;
  const global scalar* start = is_query   ? q + a.core.q_offset
                               : is_key   ? k + a.core.k_offset + skipped
                               : is_value ? v + a.core.v_offset + skipped
                                          : output + a.core.o_offset;
  const uint columns = is_query || is_key ? a.head_dim : a.value_dim;
  const uint heads = is_keys ? a.core.heads / a.core.group : a.core.heads;
  const uint rows = is_keys ? a.keys : a.core.q_len;
  const uint by_head = is_query   ? a.core.q_stride_head
                       : is_key   ? a.core.k_stride_head
                       : is_value ? a.core.v_stride_head
                                  : a.core.o_stride_head;
  const uint by_row = is_query   ? a.core.q_stride_row
                      : is_key   ? a.core.k_stride_row
                      : is_value ? a.core.v_stride_row
                                 : a.core.o_stride_row;
  const uint by_batch = is_query   ? a.core.q_stride_batch
                        : is_key   ? a.core.k_stride_batch
                        : is_value ? a.core.v_stride_batch
                                   : a.core.o_stride_batch;

  const uint map = LOCAL_ADDRESS(maps) + item * HOPPER_MAP_BYTES;
  for (uint i = 0; i < HOPPER_MAP_BYTES; i += 4) store_local(map + i, 0);
  REPLACE64("global_address", "", (ulong)start);
  REPLACE32("rank", "", 3);  // axes - 1
  REPLACE32("global_dim", "0, ", columns);
  REPLACE32("global_dim", "1, ", heads);
  REPLACE32("global_dim", "2, ", rows);
  REPLACE32("global_dim", "3, ", a.batch);
  REPLACE64("global_stride", "0, ", stride_bytes(heads, by_head));
  REPLACE64("global_stride", "1, ", stride_bytes(rows, by_row));
  REPLACE64("global_stride", "2, ", stride_bytes(a.batch, by_batch));
  REPLACE32("box_dim", "0, ", 64);
  REPLACE32("box_dim", "1, ", 1);
  REPLACE32("box_dim", "2, ", is_keys ? BLOCK_K : 64);
  REPLACE32("box_dim", "3, ", 1);
  REPLACE32("element_stride", "0, ", 1);
  REPLACE32("element_stride", "1, ", 1);
  REPLACE32("element_stride", "2, ", 1);
  REPLACE32("element_stride", "3, ", 1);
  REPLACE_CODE("elemtype", "6");  // f16; nothing but zeros is made of it
  REPLACE_CODE("interleave_layout", "0");
  REPLACE_CODE("swizzle_mode", "3");  // 128 bytes
  REPLACE_CODE("fill_mode", "0");     // zeros
  for (uint i = 0; i < HOPPER_MAP_BYTES; i += 4)
    to[(item * HOPPER_MAP_BYTES + i) / 4] = load_local(map + i);
  if (item == 0) to[HOPPER_COUNTER / 4] = 0;
}
