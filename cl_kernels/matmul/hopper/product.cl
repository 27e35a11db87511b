// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of 16-bit operands, or shares of the sums to scratch.
// Who      Groups that stay, one per multiprocessor; each steps over tiles of 128 rows by BLOCK_N columns.
// Memory   Tiles of both operands by tensor copies into a ring; plain results by tensor copies, others from local memory.
// Numerics Products of f16 or bf16, sums in float; terms in order; the shares of a split are added by matmul/core/combine.
// Assumes  sm_90a (ptx_promotion.hpp), matmul/hopper/maps before it, at least one step of terms for each share.
//
// The last warpgroup copies: one of its items fills the ring. The two others multiply, 64 rows each, with 128 sums in the
// registers of an item. They drift apart by themselves, so that the results of one leave beside the products of the other.
// Barriers FULL(i) are completed by the bytes of copies, FREE(i) by one arrival of every multiplying warp. Tiles go in bands of
// 16 rows of tiles, walked by columns, every second band backwards: those that run at once share rows and columns.
#define MATMUL_SCALES 0
#include "matmul/core/operands.clh"
#include "lib/hopper/copies.clh"
#include "operations/matmul_core/hopper/geometry.h"
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper/wgmma.clh"

#if A_BY_TERMS && B_BY_TERMS
#define TURNED "0, 0"
#elif A_BY_TERMS
#define TURNED "0, 1"
#elif B_BY_TERMS
#define TURNED "1, 0"
#else
#define TURNED "1, 1"
#endif
// From 16 terms to the next, in units of 16 bytes.
#define A_STEP ((A_BY_TERMS ? 32 : 2048) / 16)
#define B_STEP ((B_BY_TERMS ? 32 : 2048) / 16)
// Macros expand the number of columns first.
#define MULTIPLY(n, scale, constraint, a_at, b_at) WGMMA_SS_(n, scale, TURNED, constraint, sum, a_at, b_at)
#define WAIT_FOR_SUMS(n) WGMMA_WAIT(n, 0, sum)
#define ISSUE(scale, constraint)                                                          \
  do {                                                                                    \
    const ulong a_at = a_tiles + stage * (HOPPER_STAGE_BYTES / 16);                       \
    const ulong b_at = b_tiles + stage * (HOPPER_STAGE_BYTES / 16);                       \
    WGMMA_FENCE();                                                                        \
    MULTIPLY(BLOCK_N, scale, constraint, a_at, b_at);                                     \
    UNROLL for (int i = 1; i < 4; ++i) MULTIPLY(BLOCK_N, "1", "+f", a_at + i * A_STEP, b_at + i * B_STEP); \
    WGMMA_COMMIT();                                                                       \
    PTX("//@ wgmma.wait_group.sync.aligned 0;");                                          \
    if (lane == 0) barrier_arrive(FREE(stage));                                           \
    if (++stage == STAGES) stage = 0, parity ^= 1;                                        \
  } while (0)

#define FULL(i) (barriers + 8 * (i))
#define FREE(i) (barriers + 8 * (STAGES + (i)))

#define STORE_IN_ROUND(its_round, at, x, y)                                                                         \
  asm volatile("{ .reg .pred p; setp.eq.s32 p, %3, %4; @p st.shared.v2.f32 [%0], {%1, %2}; }" ::"r"(at), "f"(x), "f"(y), \
               "r"(its_round), "r"(round)                                                                           \
               : "memory")

typedef struct {
  int row, column;   // of the first element
  int inner, outer;  // numbers of the batch along its axes
  uint batch, split;
  int first, last;  // steps
} Work;

INLINE Work work_of(const struct MatmulArgs* args, int number) {
  const int tiles_m = ((int)args->m + HOPPER_ROWS - 1) / HOPPER_ROWS, tiles_n = ((int)args->n + BLOCK_N - 1) / BLOCK_N;
  const int tiles = tiles_m * tiles_n, tile = number % tiles, rest = number / tiles;
  const int band = tile / (16 * tiles_n), in_band = tile % (16 * tiles_n), height = min(tiles_m - 16 * band, 16);
  const int column = in_band / height, steps = ((int)args->k + HOPPER_TERMS - 1) / HOPPER_TERMS;
  Work work;
  work.row = (16 * band + in_band % height) * HOPPER_ROWS;
  work.column = ((band & 1) != 0 ? tiles_n - 1 - column : column) * BLOCK_N;
  work.batch = (uint)rest % args->batches;
  work.split = (uint)rest / args->batches;
  work.inner = (int)(work.batch % args->batches2);
  work.outer = (int)(work.batch / args->batches2);
  // The first shares have a step more where they do not divide all; a product of steps and shares may not fit an int.
  const int split = (int)work.split, each = steps / (int)args->splits, more = steps % (int)args->splits;
  work.first = split * each + min(split, more);
  work.last = work.first + each + (split < more ? 1 : 0);
  return work;
}

INLINE void copy_tiles(const struct MatmulArgs* args, const global uchar* maps, uint memory, uint barriers, int total) {
  int stage = 0;
  uint parity = 1;
  for (int number = (int)get_group_id(0); number < total; number += (int)get_num_groups(0)) {
    const Work work = work_of(args, number);
    const int a_inner = args->a.batch2 != 0 ? work.inner : 0, a_outer = args->a.batch1 != 0 ? work.outer : 0;
    const int b_inner = args->b.batch2 != 0 ? work.inner : 0, b_outer = args->b.batch1 != 0 ? work.outer : 0;
    for (int step = work.first; step < work.last; ++step) {
      const uint a_to = memory + stage * HOPPER_STAGE_BYTES, b_to = a_to + HOPPER_A_BYTES;
      const int term = step * HOPPER_TERMS;
      barrier_wait(FREE(stage), parity);
      barrier_expect(FULL(stage), HOPPER_STAGE_BYTES);
      if (A_BY_TERMS) {
        tensor_load(a_to, maps, term, a_inner, work.row, a_outer, FULL(stage));
      } else {
        UNROLL for (int i = 0; i < HOPPER_ROWS / 64; ++i)
          tensor_load(a_to + i * HOPPER_BLOCK_BYTES, maps, work.row + 64 * i, a_inner, term, a_outer, FULL(stage));
      }
      if (B_BY_TERMS) {
        tensor_load(b_to, maps + 128, term, b_inner, work.column, b_outer, FULL(stage));
      } else {
        UNROLL for (int i = 0; i < BLOCK_N / 64; ++i)
          tensor_load(b_to + i * HOPPER_BLOCK_BYTES, maps + 128, work.column + 64 * i, b_inner, term, b_outer,
                      FULL(stage));
      }
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}

KERNEL void matmul_hopper(global float* restrict scratch, MATMUL_FINISH_PARAMETERS, const struct MatmulArgs args) {
#if !PLAIN
  const MatmulOperands call = MATMUL_OPERANDS;
#endif
  local uchar local_memory[HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  const global uchar* maps = (const global uchar*)(scratch + args.maps);
  const uint memory = LOCAL_ADDRESS(local_memory), barriers = memory + HOPPER_BARRIERS_START;
  const int item = (int)get_local_id(0);
  const int total = (((int)args.m + HOPPER_ROWS - 1) / HOPPER_ROWS) * (((int)args.n + BLOCK_N - 1) / BLOCK_N) *
                    (int)(args.batches * args.splits);
  if (item == 0) {
    UNROLL for (int i = 0; i < STAGES; ++i) {
      barrier_init(FULL(i), 1);
      barrier_init(FREE(i), 8);
    }
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item >= 256) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 24;");
    if (item == 256) copy_tiles(&args, maps, memory, barriers, total);
    return;
  }
  PTX("//@ setmaxnreg.inc.sync.aligned.u32 240;");
  const int warpgroup = uniform(item / 128), t = item % 128, lane = item % 32, warp = t / 32;
  const ulong a_tiles = wgmma_matrix(memory + warpgroup * HOPPER_BLOCK_BYTES, HOPPER_BLOCK_BYTES);
  const ulong b_tiles = wgmma_matrix(memory + HOPPER_A_BYTES, HOPPER_BLOCK_BYTES);
  const uint own = memory + HOPPER_RESULTS_START + warpgroup * 2 * HOPPER_BUFFER_BYTES;
  float sum[BLOCK_N / 2];
  int stage = 0;
  uint parity = 0;
#if PLAIN
  uint buffer = 0;  // the next store's: the other one's last may still be read
#endif
  for (int number = (int)get_group_id(0); number < total; number += (int)get_num_groups(0)) {
    const Work work = work_of(&args, number);
    barrier_wait(FULL(stage), parity);
    ISSUE("0", "=f");
    for (int step = work.first + 1; step < work.last; ++step) {
      barrier_wait(FULL(stage), parity);
      ISSUE("1", "+f");
    }
    WAIT_FOR_SUMS(BLOCK_N);
    const int row0 = work.row + warpgroup * 64;
#if PLAIN
    UNROLL for (int round = 0; round < BLOCK_N / 128; ++round) {
      const uint to = own + buffer * HOPPER_BUFFER_BYTES;
      buffer ^= 1;
      if (t == 0) PTX("cp.async.bulk.wait_group.read 1;");  // what this buffer held has left
      GROUP_SYNC(1 + warpgroup, 128);
      UNROLL for (int i = 0; i < 8; ++i) {
        const int c = round * 8 + i;  // 16 columns
        const uint at = to + i / 4 * HOPPER_BLOCK_BYTES + (warp * 16 + lane % 16) * 128 +
                        ((2 * (i % 4) + lane / 16) ^ (lane % 8)) * 16;
        store_matrices(at, pack_scalars(args.alpha * sum[8 * c], args.alpha * sum[8 * c + 1]),
                       pack_scalars(args.alpha * sum[8 * c + 2], args.alpha * sum[8 * c + 3]),
                       pack_scalars(args.alpha * sum[8 * c + 4], args.alpha * sum[8 * c + 5]),
                       pack_scalars(args.alpha * sum[8 * c + 6], args.alpha * sum[8 * c + 7]));
      }
      FENCE_LOCAL();
      GROUP_SYNC(1 + warpgroup, 128);
      if (t == 0) {
        UNROLL for (int i = 0; i < 2; ++i)
          tensor_store(maps + 256, work.column + round * 128 + i * 64, work.inner, row0, work.outer,
                       to + i * HOPPER_BLOCK_BYTES);
        BULK_COMMIT();
      }
    }
#else
    // 64 columns at a time as floats, rows of 16 vectors whose places are exchanged by twice the row's number. One round of
    // code for all columns: sums can't be looked up, and read under a branch they would stop the matrix unit, so every
    // round has the stores of all, and a predicate.
    ROLLED for (int round = 0; round < BLOCK_N / 64; ++round) {
      const uint to = own + round % 2 * HOPPER_BUFFER_BYTES;
      const int own_row = warp * 16 + lane / 4;
      UNROLL for (int j = 0; j < BLOCK_N / 2; j += 4) {
        const int i = j / 4 % 8;
        const uint at = to + own_row * 256 + ((2 * i + lane % 4 / 2) ^ (2 * (own_row % 8))) * 16 + lane % 2 * 8;
        STORE_IN_ROUND(j / 32, at, sum[j], sum[j + 1]);
        STORE_IN_ROUND(j / 32, at + 8 * 256, sum[j + 2], sum[j + 3]);
      }
      GROUP_SYNC(1 + warpgroup, 128);
      ROLLED for (int i = t; i < 64 * 16; i += 128) {
        const int local_row = i / 16, vector = i % 16;
        const float4 x = as_float4(load_local4(to + local_row * 256 + (vector ^ (2 * (local_row % 8))) * 16));
        const uint row = (uint)(row0 + local_row), column = (uint)(work.column + 64 * round + 4 * vector);
        if (row >= args.m || column >= args.n) continue;
        if (args.splits > 1) {
          const uint vectors = (args.n + 3) / 4;
          *((global float4*)(scratch + args.partial) +
            ((work.split * args.batches + work.batch) * args.m + row) * vectors + column / 4) = x;
        } else {
          matmul_finish(&call, work.batch, row, column, x);
        }
      }
    }
#endif
  }
#if PLAIN
  if (t == 0) BULK_WAIT();
#endif
}
