// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of operands of 32, 16 or 8 bits, or one of 32 and one of 16, or shares of the sums to scratch.
// Who      Groups that stay, one per multiprocessor; each steps over tiles of 64 rows for each of WARPGROUPS by BLOCK_N columns.
// Memory   Tiles of both operands by tensor copies into a ring; results by tensor copies (RESULT) or from local memory.
// Numerics Products of f16 or bf16, sums in float; of i8, sums of integers; of 8-bit floats, sums in what the matrix unit keeps,
//          about 14 bits, of all terms, or with BLOCKS of 128, which are scaled and added in float; of floats as floats.clh has
//          it; terms in order; the shares of a split are added by matmul/core/combine. NaN among sums of floats are taken again
//          without splitting.
// Assumes  sm_90a (ptx_promotion.hpp), at most HOPPER_MOST_GROUPS groups, at least one step of terms for each share.
//
// The last warpgroup copies: one of its items fills the ring, after its warps have made the maps that copies read, which each
// group has of its own. The others, two or with BLOCKS three, multiply, 64 rows each, with at most 128 sums in the registers of an
// item. They drift apart by themselves, so that the results of one leave beside the products of another.
// Barriers FULL(i) are completed by the bytes of copies, FREE(i) by one arrival of every multiplying warp. Tiles go in bands of
// 16 rows of tiles, walked by columns, every second band backwards: those that run at once share rows and columns.
#include "lib/prelude.clh"
#include "abi/storage.h"
#include "matmul/hopper/work.clh"
#include "matmul/hopper/multiply.clh"
#include "matmul/hopper/maps.clh"
#if BLOCKS
#include "matmul/hopper/blocks.clh"
#endif
#if RESULT == HOPPER_ANY_RESULT
#define MATMUL_SCALES (WHOLE_SUMS || FLOATS_OF_8_BITS)
#include "matmul/core/operands.clh"
#define ASK_FOR_MATRIX(step)
#if FLOATS
#include "matmul/hopper/floats.clh"
#endif
#else
#include "matmul/hopper/direct.clh"
#endif
#define MATRIX ((FEATURES & MATMUL_GATE) != 0 ? gate : residual)
#define MAPS (RESULT == HOPPER_ANY_RESULT ? 2 : (FEATURES & (MATMUL_GATE | MATMUL_RESIDUAL)) == 0 ? 3 : 4)

// The warpgroup that copies begins with this item; registers of an item, as it and the others take them.
#define COPYING (128 * WARPGROUPS)
#if WARPGROUPS == 3
#define COPYING_REGISTERS "32"
#define MULTIPLYING_REGISTERS "160"
#else
#define COPYING_REGISTERS "24"
#define MULTIPLYING_REGISTERS "240"
#endif

#define MATRIX_FULL(i) (barriers + 8 * (2 * STAGES + (i)))  // of a warpgroup

INLINE void copy_tiles(const struct MatmulArgs* args, const global uchar* maps, uint memory, uint barriers, int total) {
  int stage = 0;
  uint parity = 1;
  for (int number = (int)get_group_id(0); number < total; number += (int)get_num_groups(0)) {
    const Work work = work_of(args, number);
    for (int step = work.first; step < work.last; ++step) {
      barrier_wait(FREE(stage), parity);
      copy_stage(args, maps, maps + TENSOR_MAP_BYTES, &work, step * TERMS, memory + stage * HOPPER_STAGE_BYTES, FULL(stage));
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}

KERNEL void matmul_hopper(const global uchar* a, const global uchar* b, global float* restrict scratch, MATMUL_FINISH_PARAMETERS,
                          const struct MatmulArgs args) {
#if RESULT == HOPPER_ANY_RESULT
  const MatmulOperands call = MATMUL_OPERANDS;
#endif
  local uchar local_memory[HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  global uint* own_maps = (global uint*)scratch + args.maps + get_group_id(0) * HOPPER_MAPS_FLOATS;
  const global uchar* maps = (const global uchar*)own_maps;
  const uint memory = LOCAL_ADDRESS(local_memory), barriers = memory + HOPPER_BARRIERS_START;
  const int item = (int)get_local_id(0);
  const int total = (((int)args.m + HOPPER_ROWS - 1) / HOPPER_ROWS) * (((int)args.n + BLOCK_N - 1) / BLOCK_N) *
                    (int)(args.batches * args.splits);
  if (item == 0) {
    UNROLL for (int i = 0; i < STAGES; ++i) {
      barrier_init(FULL(i), 1);
      barrier_init(FREE(i), 4 * WARPGROUPS);
    }
    UNROLL for (int i = 0; i < WARPGROUPS; ++i) barrier_init(MATRIX_FULL(i), 1);
    FENCE_LOCAL();
  }
  if (item >= COPYING && item < COPYING + 32 * MAPS) {
    const uint number = (uint)(item - COPYING) / 32;
#if FLOATS
    const TensorMap map = number == 1 ? map_of_parts(scratch, &args) : map_of_number(number, a, b, result, MATRIX, &args);
#else
    const TensorMap map = map_of_number(number, a, b, result, MATRIX, &args);
#endif
    make_tensor_map_together(&map, memory + HOPPER_RESULTS_START + number * TENSOR_MAP_BYTES,
                             own_maps + number * HOPPER_MAP_FLOATS, (uint)item % 32);
    PUBLISH_TENSOR_MAPS();
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (item >= COPYING) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 " COPYING_REGISTERS ";");
    if (item == COPYING) {
      take_tensor_map(maps);
      take_tensor_map(maps + TENSOR_MAP_BYTES);
      copy_tiles(&args, maps, memory, barriers, total);
    }
    return;
  }
  PTX("//@ setmaxnreg.inc.sync.aligned.u32 " MULTIPLYING_REGISTERS ";");
  const int warpgroup = uniform(item / 128), t = item % 128, lane = item % 32, warp = t / 32;
  const ulong b_tiles = wgmma_matrix(memory + HOPPER_A_BYTES, HOPPER_BLOCK_BYTES);
  const uint own = memory + HOPPER_RESULTS_START + warpgroup * 2 * HOPPER_BUFFER_BYTES;
#if FLOATS
  const uint rows = memory + warpgroup * HOPPER_ROWS_BYTES + place_of_rows((uint)lane, (uint)warp);
#else
  const ulong a_tiles = wgmma_matrix(memory + warpgroup * HOPPER_BLOCK_BYTES, HOPPER_BLOCK_BYTES);
#endif
  SUM sum[BLOCK_N / 2];
  int stage = 0;
  uint parity = 0;
#if RESULT != HOPPER_ANY_RESULT
  if (t == 0) {
    take_tensor_map(maps + 2 * TENSOR_MAP_BYTES);
    if (HAS_MATRIX) take_tensor_map(maps + 3 * TENSOR_MAP_BYTES);
  }
#endif
  for (int number = (int)get_group_id(0); number < total; number += (int)get_num_groups(0)) {
    const Work work = work_of(&args, number);
    const int row0 = work.row + warpgroup * 64;
#if RESULT != HOPPER_ANY_RESULT
    ASK_FOR_BIAS();
#endif
#if BLOCKS
    BlockScales ahead = block_scales(&args, scale_a, scale_b, &work, (uint)(row0 + warp * 16 + lane / 4));
    UNROLL for (int i = 0; i < BLOCK_N / 2; ++i) sum[i] = 0.0f;
    for (int step = work.first; step < work.last; ++step) {
      SUM product[BLOCK_N / 2];
      const float of_low = ahead.low * ahead.of_columns, of_high = ahead.high * ahead.of_columns;
      next_scales(&ahead, step + 1 < work.last);
      barrier_wait(FULL(stage), parity);
      START_STAGE("0", OUT, product);
      ASK_FOR_MATRIX(step);
      WAIT_FOR_SUMS(BLOCK_N, product);
      RELEASE_STAGE();
      ADD_SCALED();
    }
#elif FLOATS
    UNROLL for (int i = 0; i < BLOCK_N / 2; ++i) sum[i] = 0.0f;
    for (int step = work.first; step < work.last; ++step) {
      SUM product[BLOCK_N / 2];
      uint high[ROW_WORDS], low[ROW_WORDS];
      barrier_wait(FULL(stage), parity);
      load_rows(high, low, rows + stage * HOPPER_STAGE_BYTES);
      START_FLOATS(product, high, low);
      WAIT_FOR_SUMS(BLOCK_N, product);
      RELEASE_STAGE();
      UNROLL for (int i = 0; i < BLOCK_N / 2; ++i) sum[i] += product[i];
    }
#else
    barrier_wait(FULL(stage), parity);
    ISSUE("0", OUT);
    ASK_FOR_MATRIX(work.first);
    for (int step = work.first + 1; step < work.last; ++step) {
      barrier_wait(FULL(stage), parity);
      ISSUE("1", IN);
      ASK_FOR_MATRIX(step);
    }
    WAIT_FOR_SUMS(BLOCK_N, sum);
#endif
#if RESULT != HOPPER_ANY_RESULT
    STORE_DIRECTLY();
#else
#if FLOATS
    const bool plain = matmul_is_plain(&call, work.batch, DTYPE_F32, 4);
    global float* plain_result = (global float*)result + matmul_base(&call, args.result, work.batch);
#endif
    ROLLED for (int round = 0; round < BLOCK_N / 64; ++round) {
      const uint to = own + round % 2 * (2 * HOPPER_BUFFER_BYTES - 64 * 256);
      if (HOPPER_BUFFER_BYTES < 64 * 256) GROUP_SYNC(1 + warpgroup, 128);
      STORE_SUMS_OF_ROUND(to)
      GROUP_SYNC(1 + warpgroup, 128);
      ROLLED for (int i = t; i < 64 * 16; i += 128) {
        const int local_row = i / 16, vector = i % 16;
        uint4 words = load_sums(to, local_row, vector);
        const uint row = (uint)(row0 + local_row), column = (uint)(work.column + 64 * round + 4 * vector);
        if (row >= args.m || column >= args.n) continue;
#if FLOATS
        words = as_uint4(checked_sums(&call, a, b, &work, row, column, as_float4(words)));
        if (plain && column + 4 <= args.n) {
          *(global float4*)(plain_result + row * args.result.row + column) = args.alpha * as_float4(words);
          continue;
        }
#endif
        if (args.splits > 1) {
          const uint vectors = (args.n + 3) / 4;
          *((global float4*)(scratch + args.partial) +
            ((work.split * args.batches + work.batch) * args.m + row) * vectors + column / 4) = as_float4(words);
        } else {
#if WHOLE_SUMS
          matmul_finish_whole(&call, work.batch, row, column, as_int4(words));
#else
          matmul_finish(&call, work.batch, row, column, as_float4(words));
#endif
        }
      }
    }
#endif
  }
#if RESULT != HOPPER_ANY_RESULT
  if (t == 0) BULK_WAIT();
#endif
}
