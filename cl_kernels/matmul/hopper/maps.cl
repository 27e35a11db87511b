// SPDX-License-Identifier: Apache-2.0
// What     Tensor maps of a, b and the result, which Hopper's copies read.
// Who      One group; item t < 3 makes one map.
// Memory   3 x 128 bytes, made in local memory and copied to scratch.
// Numerics None.
// Assumes  sm_90a (ptx_promotion.hpp); offsets and strides are multiples of 8 elements.
#include "lib/prelude.clh"
#include "lib/hopper/tensor_map.clh"
#include "operations/matmul_core/args.h"
#include "operations/matmul_core/hopper/geometry.h"

// Boxes of 64 contiguous elements: `along` says how many there are, `across` how many lines of them.
INLINE TensorMap map_of(const global scalar* from, struct MatmulView view, const struct MatmulArgs* args, uint along,
                        uint across, uint stride, uint box_rows) {
  TensorMap tensor;
  tensor.start = from + view.offset;
  tensor.columns = along;
  tensor.rows = across;
  tensor.by_row = stride;
  tensor.heads = view.batch2 != 0 ? args->batches2 : 1;
  tensor.by_head = view.batch2;
  tensor.batch = view.batch1 != 0 ? args->batches1 : 1;
  tensor.by_batch = view.batch1;
  tensor.box_rows = box_rows;
  return tensor;
}

KERNEL void matmul_hopper_maps(const global scalar* a, const global scalar* b, const global scalar* result,
                               global uint* restrict scratch, const struct MatmulArgs args) {
  local uint maps[HOPPER_MAPS_FLOATS] __attribute__((aligned(128)));
  const uint item = get_local_id(0);
  if (item >= 3) return;
  TensorMap tensor;
  if (item == 0) {
    tensor = A_BY_TERMS ? map_of(a, args.a, &args, args.k, args.m, args.a.row, HOPPER_ROWS)
                        : map_of(a, args.a, &args, args.m, args.k, args.a.column, HOPPER_TERMS);
  } else if (item == 1) {
    tensor = B_BY_TERMS ? map_of(b, args.b, &args, args.k, args.n, args.b.column, BLOCK_N)
                        : map_of(b, args.b, &args, args.n, args.k, args.b.row, HOPPER_TERMS);
  } else {
    tensor = map_of(result, args.result, &args, args.n, args.m, args.result.row, 64);
  }
#if !PLAIN
  if (item == 2) return;
#endif
  make_tensor_map(&tensor, LOCAL_ADDRESS(maps) + item * TENSOR_MAP_BYTES,
                  scratch + args.maps + item * HOPPER_MAP_FLOATS);
}
