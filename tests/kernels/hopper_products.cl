// SPDX-License-Identifier: Apache-2.0
// lib/hopper alone: tensor maps of a, b and c, then product = a b^T and sums = product c by one
// warpgroup, from tiles that tensor copies brought. Tiles of 64 rows reach over the tensors' ends.
#include "lib/prelude.clh"
#include "lib/hopper/tensor_map.clh"
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper/wgmma.clh"

#define BLOCKS 2                // of 64 features, of a and b
#define BLOCK_BYTES (64 * 128)  // 64 rows of 64 columns
#define TILE_BYTES (BLOCKS * BLOCK_BYTES)

KERNEL void hopper_maps(const global scalar* a, const global scalar* b, const global scalar* c,
                        global uint* maps, const uint rows) {
  local uint made[3 * TENSOR_MAP_BYTES / 4] __attribute__((aligned(128)));
  const uint item = get_local_id(0);
  if (item >= 3) return;
  const uint columns = item == 2 ? 64 : FEATURES;
  const TensorMap tensor = {.start = item == 0 ? a : item == 1 ? b : c,
                            .element = 2,
                            .columns = columns,
                            .heads = 1,
                            .rows = rows,
                            .batch = 1,
                            .by_head = columns,
                            .by_row = columns,
                            .by_batch = columns * rows,
                            .box_rows = 64};
  make_tensor_map(&tensor, LOCAL_ADDRESS(made) + item * TENSOR_MAP_BYTES, maps + item * TENSOR_MAP_BYTES / 4);
}

KERNEL void hopper_products(const global uchar* maps, global float* product_out, global float* sum_out) {
  local uchar memory[2 * TILE_BYTES + BLOCK_BYTES + 8] __attribute__((aligned(1024)));
  const uint at_a = LOCAL_ADDRESS(memory), at_b = at_a + TILE_BYTES, at_c = at_b + TILE_BYTES;
  const uint full = at_c + BLOCK_BYTES;
  const uint item = get_local_id(0), lane = item % 32;
  if (item == 0) {
    barrier_init(full, 1);
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    barrier_expect(full, 2 * TILE_BYTES + BLOCK_BYTES);
    for (int c = 0; c < BLOCKS; ++c) {
      tensor_load(at_a + c * BLOCK_BYTES, maps, c * 64, 0, 0, 0, full);
      tensor_load(at_b + c * BLOCK_BYTES, maps + TENSOR_MAP_BYTES, c * 64, 0, 0, 0, full);
    }
    tensor_load(at_c, maps + 2 * TENSOR_MAP_BYTES, 0, 0, 0, 0, full);
  }
  barrier_wait(full, 0);
  WARP_SYNC();

  const ulong a = wgmma_matrix(at_a, 0), b = wgmma_matrix(at_b, 0), c = wgmma_matrix(at_c, BLOCK_BYTES);
  float product[32], sum[32];
  uint weight[16];
  WGMMA_FENCE();
  WGMMA_SS_FIRST(64, product, a, b);
  UNROLL for (uint k = 1; k < BLOCKS * 4; ++k)
    WGMMA_SS(64, product, a + (k / 4 * BLOCK_BYTES + k % 4 * 32) / 16, b + (k / 4 * BLOCK_BYTES + k % 4 * 32) / 16);
  WGMMA_COMMIT();
  WGMMA_WAIT(64, 0, product);

  UNROLL for (uint j = 0; j < 32; ++j) sum[j] = 0.0f;
  UNROLL for (uint j = 0; j < 16; ++j) weight[j] = pack_scalars(product[2 * j], product[2 * j + 1]);
  WGMMA_FENCE();
  UNROLL for (uint k = 0; k < 4; ++k)
    WGMMA_RS(64, sum, weight[4 * k], weight[4 * k + 1], weight[4 * k + 2], weight[4 * k + 3], c + k * 2048 / 16);
  WGMMA_COMMIT();
  WGMMA_WAIT(64, 0, sum);

  const uint row = item / 32 * 16 + lane / 4;
  UNROLL for (uint j = 0; j < 32; ++j) {
    const uint to = (row + j / 2 % 2 * 8) * 64 + j / 4 * 8 + lane % 4 * 2 + j % 2;
    product_out[to] = product[j];
    sum_out[to] = sum[j];
  }
}
