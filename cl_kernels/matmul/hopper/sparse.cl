// SPDX-License-Identifier: Apache-2.0
// What     Products with blocks of a sparse matrix, 16-bit operands: the sums of the blocks of each result.
// Who      Groups that stay, one per multiprocessor; a counter hands them tiles of 128 columns of a result by BLOCK_N rows of the
//          dense matrix, so that few bytes of blocks meet many of rows.
// Memory   As matmul/hopper/product, with maps of its own for each group; blocks are read where they are stored.
// Numerics Products of f16 or bf16, sums in float, blocks in the order of the list, terms in order; one rounding.
// Assumes  sm_90a (ptx_promotion.hpp); the list of matmul/hopper/sparse_list or matmul/sparse/list, whose second word, a counter of
//          tiles, is 0. Blocks of multiples of 128 columns and 64 terms, counted as the product counts them.
#include "lib/prelude.clh"
#include "abi/storage.h"
#include "matmul/hopper/multiply.clh"
#include "matmul/hopper/maps.clh"
#include "matmul/hopper/handed.clh"
#include "matmul/hopper/direct.clh"
#include "operations/sparse_core/hopper/args.h"

// A step of block `block`, from its term `term` on; the block has the terms from `first` on of the dense matrix.
INLINE void copy_block(const global uchar* maps, uint block, uint first, uint row, uint column, uint term, uint to, uint full) {
  const uint b_to = to + HOPPER_A_BYTES;
  barrier_expect(full, HOPPER_STAGE_BYTES);
  if (A_BY_TERMS) {
    tensor_load(to, maps, (int)term, (int)block, (int)row, 0, full);
  } else {
    UNROLL for (int i = 0; i < HOPPER_ROWS / 64; ++i)
      tensor_load(to + i * HOPPER_BLOCK_BYTES, maps, (int)row + 64 * i, (int)block, (int)term, 0, full);
  }
  if (B_BY_TERMS) {
    tensor_load(b_to, maps + TENSOR_MAP_BYTES, (int)(first + term), 0, (int)column, 0, full);
  } else {
    UNROLL for (int i = 0; i < BLOCK_N / 64; ++i)
      tensor_load(b_to + i * HOPPER_BLOCK_BYTES, maps + TENSOR_MAP_BYTES, (int)column + 64 * i, 0, (int)(first + term), 0, full);
  }
}

// A tile by its number: which result, from which row and column on, and where its blocks are in the list.
typedef struct {
  uint result, row, column, first, end;
} Tile;
INLINE Tile tile_of(const struct SparseHopperArgs* call, const global uint4* list, uint number) {
  const uint each = call->rows / HOPPER_ROWS, tiles_m = call->results * each;
  const uint tiles_n = (call->product.n + BLOCK_N - 1) / BLOCK_N;
  const bool there = number < tiles_m * tiles_n;
  const uint band = number / (BAND * tiles_n), in_band = number % (BAND * tiles_n);
  const uint height = there ? min(tiles_m - BAND * band, (uint)BAND) : 1, tile_row = BAND * band + in_band % height;
  Tile tile;
  tile.result = NO_GROUP;
  tile.row = tile_row % each * HOPPER_ROWS;
  tile.column = in_band / height * BLOCK_N;
  tile.first = tile.end = 0;
  if (there) {
    const uint4 range = list[1 + tile_row / each];
    tile.result = range.s0, tile.first = range.s1, tile.end = range.s2;
  }
  return tile;
}

// The next tile is taken while the last block but one is copied, and looked up while the last one is, so that nobody waits for them.
INLINE void copy_tiles(const struct SparseHopperArgs* call, const global uint4* list, const global uchar* maps,
                       volatile global uint* counter, uint memory, uint barriers) {
  const global uint2* table = (const global uint2*)((const global uint*)list + call->table);
  int stage = 0;
  uint parity = 1, slot = 0, tile_parity = 1;
  Tile tile = tile_of(call, list, (uint)get_group_id(0));
  for (;;) {
    const bool is_empty = tile.first == tile.end, there = tile.result != NO_GROUP;
    // Of a result without blocks a step of zeros, from behind all terms and blocks.
    uint2 next = (uint2)(call->product.k, call->blocks);
    if (!is_empty) next = table[tile.first];
    const uint blocks = is_empty ? 1 : tile.end - tile.first, terms = is_empty ? TERMS : call->terms;
    HAND_TILE((uint4)(tile.result * call->rows + tile.row, tile.column, tile.result, blocks * (terms / TERMS)));
    if (!there) break;
    uint number = 0;
    Tile after = tile;
    for (uint block = 0; block < blocks; ++block) {
      const uint2 here = next;
      if (block + 1 < blocks) next = table[tile.first + block + 1];
      if (block + 2 == blocks || blocks == 1) number = atomic_inc(counter) + (uint)get_num_groups(0);
      if (block + 1 == blocks) after = tile_of(call, list, number);
      for (uint term = 0; term < terms; term += TERMS) {
        barrier_wait(FREE(stage), parity);
        copy_block(maps, here.s1, here.s0, tile.row, tile.column, term, memory + stage * HOPPER_STAGE_BYTES, FULL(stage));
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
    }
    tile = after;
  }
}

#if TURNED_RESULT
// 64 rows of the tile are 128 bytes of BLOCK_N rows of the result. Matrices of 8 x 8 are exchanged on their way to local memory:
// item t has the address of a row of result t % 8 of matrix t / 8; the second of two are the rows 8 further on.
INLINE void store_matrices_turned(uint at, uint a, uint b, uint c, uint d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
#define STORE_RESULT()                                                                                                       \
  {                                                                                                                          \
    if (t == 0) BULK_WAIT_READ();                                                                                            \
    GROUP_SYNC(1 + warpgroup, 128);                                                                                          \
    UNROLL for (int j = 0; j < BLOCK_N / 8; j += 2) {                                                                        \
      const uint at = own + (8 * j + lane / 16 * 8 + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16;        \
      store_matrices_turned(at, pack_results(sum[4 * j], sum[4 * j + 1]), pack_results(sum[4 * j + 2], sum[4 * j + 3]),      \
                            pack_results(sum[4 * j + 4], sum[4 * j + 5]), pack_results(sum[4 * j + 6], sum[4 * j + 7]));     \
    }                                                                                                                        \
    FENCE_LOCAL();                                                                                                           \
    GROUP_SYNC(1 + warpgroup, 128);                                                                                          \
    if (t == 0) {                                                                                                            \
      UNROLL for (int i = 0; i < BLOCK_N / 64; ++i)                                                                          \
        tensor_store(maps + 2 * TENSOR_MAP_BYTES, row0, 0, work.column + 64 * i, 0, own + i * HOPPER_BLOCK_BYTES);           \
      BULK_COMMIT();                                                                                                         \
    }                                                                                                                        \
  }
#else
#define STORE_RESULT()                            \
  const global float *scale_a = 0, *scale_b = 0; \
  STORE_DIRECTLY()
#endif

INLINE TensorMap map_to_make(uint number, const global void* a, const global void* b, const global void* result,
                             const struct MatmulArgs* args) {
  if (TURNED_RESULT && number == 2) return map_of(result, ELEMENT, args->result, args, args->m, args->n, args->result.column, 64);
  return map_of_number(number, a, b, result, 0, args);
}

KERNEL void sparse_hopper(const global uchar* a, const global uchar* b, global float* scratch, global void* restrict result,
                          const struct SparseHopperArgs call) {
  const struct MatmulArgs args = call.product;
  local uchar local_memory[GROUPED_ENDS_START] __attribute__((aligned(1024)));
  const global uint4* list = (const global uint4*)scratch;
  global uint* own_maps = (global uint*)scratch + args.maps + get_group_id(0) * HOPPER_MAPS_FLOATS;
  const global uchar* maps = (const global uchar*)own_maps;
  const uint memory = LOCAL_ADDRESS(local_memory), barriers = memory + HOPPER_BARRIERS_START;
  const int item = (int)get_local_id(0);
  if (item == 0) init_barriers_of_tiles(memory, barriers);
  if (item >= 256 && item < 256 + 3) {
    const uint number = (uint)item - 256;
    const TensorMap map = map_to_make(number, a, b, result, &args);
    make_tensor_map(&map, memory + HOPPER_RESULTS_START + number * TENSOR_MAP_BYTES, own_maps + number * HOPPER_MAP_FLOATS);
    PUBLISH_TENSOR_MAPS();
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (item >= 256) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 40;");
    if (item == 256) {
      take_tensor_map(maps);
      take_tensor_map(maps + TENSOR_MAP_BYTES);
      copy_tiles(&call, list, maps, (volatile global uint*)scratch + 1, memory, barriers);
    }
    return;
  }
  PTX("//@ setmaxnreg.inc.sync.aligned.u32 232;");
  const int warpgroup = uniform(item / 128), t = item % 128, lane = item % 32, warp = t / 32;
  const ulong a_tiles = wgmma_matrix(memory + warpgroup * HOPPER_BLOCK_BYTES, HOPPER_BLOCK_BYTES);
  const ulong b_tiles = wgmma_matrix(memory + HOPPER_A_BYTES, HOPPER_BLOCK_BYTES);
  const uint own = memory + HOPPER_RESULTS_START + warpgroup * 2 * HOPPER_BUFFER_BYTES;
  SUM sum[BLOCK_N / 2];
  int stage = 0;
  uint parity = 0, slot = 0, tile_parity = 0;
  if (t == 0) take_tensor_map(maps + 2 * TENSOR_MAP_BYTES);
  for (;;) {
    uint4 tile;
    TAKE_TILE(tile);
    if (tile.s2 == NO_GROUP) break;
    Work work;
    work.row = (int)tile.s0;
    work.column = (int)tile.s1;
    work.inner = work.outer = 0;
    const int row0 = work.row + warpgroup * 64, steps = (int)tile.s3;
    MULTIPLY_STAGES(steps);
    STORE_RESULT();
  }
  if (t == 0) BULK_WAIT();
}
