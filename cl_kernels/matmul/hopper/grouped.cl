// SPDX-License-Identifier: Apache-2.0
// What     Products of groups of rows with a matrix each, or of groups of terms: 16-bit operands. With HOPPER_HALVES the matrix
//          has the columns of a gate, then those of up, and the result is act(gate) up.
// Who      Groups that stay, one per multiprocessor; a counter hands them tiles of 128 rows by TILE_N columns of one group.
// Memory   As matmul/hopper/product. Of tiles in which a group ends its rows are stored one by one from local memory.
// Numerics Products of f16 or bf16, sums in float, terms in order; one rounding.
// Assumes  sm_90a (ptx_promotion.hpp); what matmul/hopper/grouped_list leaves; at most GROUPED_MOST_HELD groups.
//
// Tiles are not of one size: a static order would let those that share a matrix drift apart, until caches no longer serve them.
// The item that copies takes the number of its next tile from the counter while it copies this one, finds out whose it is and
// hands it to the others (handed.clh). Tiles of a group go in bands of 16 rows of tiles as those of matmul/hopper/product do.
#include "lib/prelude.clh"
#include "abi/storage.h"
#include "lib/typed.clh"
#include "matmul/hopper/multiply.clh"
#include "lib/hopper/tensor_map.clh"
#include "matmul/hopper/handed.clh"
#if RESULT != HOPPER_ANY_RESULT
#include "matmul/hopper/direct.clh"
#endif

#define OVER_TERMS (RAGGED == GROUPED_TERMS)
#define START(g) load_local(memory + GROUPED_ENDS_START + 4 * (g))
#define END(g) START((g) + 1)
#define STEPS(terms) (((terms) + TERMS - 1) / TERMS)

INLINE uint place_of(struct MatmulView view, uint group, uint row, uint column) {
  return view.offset + group * view.batch2 + row * view.row + column * view.column;
}

// Columns `column` to column + 3 of a row, as far as there are; column is a multiple of four.
INLINE void finish(const struct MatmulArgs* args, const global void* addend, global void* result, bool adds, uint group, uint row,
                   uint column, float4 sum) {
  const uint count = min(args->n - column, 4u);
  if (adds && (args->features & MATMUL_ADDEND) != 0)
    sum += load_typed_steps(addend, place_of(args->addend, group, row, column), args->addend.column, count,
                            (args->types >> MATMUL_TYPE_ADDEND) & 15u);
  const uint at = place_of(args->result, group, row, column), step = args->result.column;
  const uint type = (args->types >> MATMUL_TYPE_RESULT) & 15u;
  if (step == 1 && count == 4 && at % 4 == 0) {
    store_typed_vector(sum, result, at, type);
  } else {
    store_typed_steps(sum, result, at, step, count, type);
  }
}

// Rows of no group, and all where there are no terms: `item` of 256 of each work-group takes vectors of them.
INLINE void finish_others(const struct MatmulArgs* args, const global void* addend, global void* result, uint memory, uint item) {
  const uint vectors = (args->n + 3) / 4, held = args->batches, step = (uint)get_num_groups(0) * 256;
  uint first = args->m, end = args->m;
  if (OVER_TERMS) {
    if (args->k != 0) return;
  } else if (held != 0) {
    first = START(0), end = START(held);
  }
  const uint rows = OVER_TERMS ? held * args->m : args->k == 0 ? args->m : args->m - (end - first);
  for (uint i = (uint)get_group_id(0) * 256 + item; i < rows * vectors; i += step) {
    uint row = i / vectors, group = 0;
    if (OVER_TERMS) {
      group = row / args->m, row = row % args->m;
    } else if (args->k != 0 && row >= first) {
      row += end - first;
    }
    const bool is_held = !OVER_TERMS && row >= first && row < end;
    finish(args, addend, result, !is_held, group, row, i % vectors * 4, (float4)(0.0f));
  }
}

INLINE void copy_tiles(const struct MatmulArgs* args, const global uchar* maps, volatile global uint* counter, uint memory,
                       uint barriers) {
  const uint tiles_n = (args->n + TILE_N - 1) / TILE_N, held = args->k != 0 ? args->batches : 0;
  const global uchar *a_map = maps, *b_map = maps + TENSOR_MAP_BYTES;
  int stage = 0;
  uint parity = 1, slot = 0, tile_parity = 1;
  uint number = (uint)get_group_id(0), group = NO_GROUP, before = 0, tiles = 0, start = 0, end = 0;
  for (;;) {
    while (number >= before + tiles) {
      if (++group == held) break;
      before += tiles;
      start = START(group), end = END(group);
      tiles = ((OVER_TERMS ? args->m : end - start) + HOPPER_ROWS - 1) / HOPPER_ROWS * tiles_n;
    }
    const bool there = group != held;
    const uint tiles_m = tiles / max(tiles_n, 1u), in_group = number - before;
    const uint band = in_group / (16 * tiles_n), in_band = in_group % (16 * tiles_n), height = min(tiles_m - 16 * band, 16u);
    const uint column = in_band / max(height, 1u), tile_row = 16 * band + in_band % max(height, 1u);
    Work work;
    work.row = (int)((OVER_TERMS ? 0 : start) + tile_row * HOPPER_ROWS);
    work.column = (int)(((band & 1) != 0 ? tiles_n - 1 - column : column) * TILE_N);
    work.inner = (int)group;
    work.outer = 0;
    // An empty group of terms has a step of zeros, from behind all terms.
    const uint first = !OVER_TERMS ? 0 : end != start ? start : args->k;
    const uint steps = OVER_TERMS ? max(STEPS(end - start), 1u) : STEPS(args->k);
    HAND_TILE((uint4)((uint)work.row, (uint)work.column, there ? group : NO_GROUP, OVER_TERMS ? steps : end));
    if (!there) break;
    number = atomic_inc(counter) + (uint)get_num_groups(0);
    if (OVER_TERMS) {
      a_map = maps + (GROUPED_MAPS + 2 * group) * TENSOR_MAP_BYTES;
      b_map = a_map + TENSOR_MAP_BYTES;
    }
    for (uint step = 0; step < steps; ++step) {
      barrier_wait(FREE(stage), parity);
      copy_stage(args, a_map, b_map, &work, (int)(first + step * TERMS), memory + stage * HOPPER_STAGE_BYTES, FULL(stage));
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}

#if RESULT != HOPPER_ANY_RESULT
// Elements of 16 bytes of a row of the result; how many such are in a row of a buffer.
#define CHUNK (RESULT == HOPPER_WORDS ? 4 : 8)
#define ROUND_CHUNKS (8 * ROUND_BLOCKS)
INLINE void store_chunk(const struct MatmulArgs* args, global void* result, uint row, uint column, uint4 words) {
  if (column >= args->n) return;
  const uint at = place_of(args->result, 0, row, column), count = args->n - column;
  if (count >= CHUNK) {
    *(global uint4*)((global uchar*)result + (size_t)at * (16 / CHUNK)) = words;
    return;
  }
  UNROLL for (uint i = 0; i < 4; ++i) {
    const uint word = i == 0 ? words.s0 : i == 1 ? words.s1 : i == 2 ? words.s2 : words.s3;
    if (CHUNK == 4) {
      if (i < count) ((global uint*)result)[at + i] = word;
    } else {
      if (2 * i < count) ((global ushort*)result)[at + 2 * i] = (ushort)word;
      if (2 * i + 1 < count) ((global ushort*)result)[at + 2 * i + 1] = (ushort)(word >> 16);
    }
  }
}

// Behind them the buffers that the last copies leave from are free again.
#define STORE_TILE()                                                                                                       \
  {                                                                                                                        \
    const uint first = 2 * (lane % 4);                                                                                     \
    const Scales scales = scales_of(0, 0, &args, &work, 0);                                                                \
    UNROLL for (int round = 0; round < ROUNDS; ++round) {                                                                  \
      const uint to = own + round % 2 * HOPPER_BUFFER_BYTES;                                                               \
      if (t == 0) WAIT_FOR_BUFFER();                                                                                       \
      GROUP_SYNC(1 + warpgroup, 128);                                                                                      \
      STORE_ROUND()                                                                                                        \
      FENCE_LOCAL();                                                                                                       \
      GROUP_SYNC(1 + warpgroup, 128);                                                                                      \
      if (OVER_TERMS || rows >= 64) {                                                                                      \
        if (t == 0) {                                                                                                      \
          UNROLL for (int i = 0; i < ROUND_BLOCKS; ++i)                                                                    \
            tensor_store(maps + 2 * TENSOR_MAP_BYTES, work.column + round * ROUND_COLUMNS + i * BLOCK_COLUMNS, OVER_TERMS ? work.inner : 0, \
                         row0, 0, to + i * HOPPER_BLOCK_BYTES);                                                            \
        }                                                                                                                  \
      } else {                                                                                                             \
        ROLLED for (int i = t; i < rows * ROUND_CHUNKS; i += 128) {                                                        \
          const int row = i / ROUND_CHUNKS, chunk = i % ROUND_CHUNKS;                                                      \
          store_chunk(&args, result, (uint)(row0 + row), (uint)(work.column + round * ROUND_COLUMNS + chunk * CHUNK),      \
                      load_local4(to + chunk / 8 * HOPPER_BLOCK_BYTES + row * 128 + (chunk % 8 ^ row % 8) * 16));          \
        }                                                                                                                  \
      }                                                                                                                    \
      if (t == 0) BULK_COMMIT(); /* a group of no copies, too: buffers are counted by them */                              \
    }                                                                                                                      \
  }
#else
#define STORE_TILE()                                                                                                    \
  ROLLED for (int round = 0; round < BLOCK_N / 64; ++round) {                                                           \
    const uint to = own + round % 2 * HOPPER_BUFFER_BYTES;                                                              \
    STORE_SUMS_OF_ROUND(to)                                                                                             \
    GROUP_SYNC(1 + warpgroup, 128);                                                                                     \
    ROLLED for (int i = t; i < min(rows, 64) * 16; i += 128) {                                                          \
      const uint column = (uint)(work.column + 64 * round + i % 16 * 4);                                                \
      if (column >= args.n) continue;                                                                                   \
      finish(&args, addend, result, OVER_TERMS, OVER_TERMS ? (uint)work.inner : 0, (uint)(row0 + i / 16), column,       \
             as_float4(load_sums(to, i / 16, i % 16)));                                                                 \
    }                                                                                                                   \
  }
#endif

KERNEL void grouped_hopper(const global uchar* a, const global uchar* b, global float* scratch, const global void* restrict addend,
                           global void* restrict result, const struct MatmulArgs args) {
  local uchar local_memory[GROUPED_LOCAL_BYTES] __attribute__((aligned(1024)));
  const global uint4* list = (const global uint4*)scratch;
  const global uchar* maps = (const global uchar*)(scratch + args.maps);
  const uint memory = LOCAL_ADDRESS(local_memory), barriers = memory + HOPPER_BARRIERS_START, held = args.batches;
  const int item = (int)get_local_id(0);
  if (item == 0) init_barriers_of_tiles(memory, barriers);
  for (uint g = (uint)item; g < held; g += WG_X) {
    const uint4 range = list[1 + g];
    if (g == 0) store_local(memory + GROUPED_ENDS_START, range.s1);
    store_local(memory + GROUPED_ENDS_START + 4 * (g + 1), range.s2);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item >= 256) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 40;");
    if (item == 256) copy_tiles(&args, maps, (volatile global uint*)scratch + 1, memory, barriers);
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
  finish_others(&args, addend, result, memory, (uint)item);
  for (;;) {
    uint4 tile;
    TAKE_TILE(tile);
    if (tile.s2 == NO_GROUP) break;
    Work work;
    work.row = (int)tile.s0;
    work.column = (int)tile.s1;
    work.inner = (int)tile.s2;
    work.outer = 0;
    const int row0 = work.row + warpgroup * 64, rows = (int)(OVER_TERMS ? args.m : tile.s3) - row0;
    const int steps = (int)(OVER_TERMS ? tile.s3 : STEPS(args.k));
    if (rows <= 0) {  // all of them are the other warpgroup's
      ROLLED for (int step = 0; step < steps; ++step) {
        barrier_wait(FULL(stage), parity);
        WARP_SYNC();
        if (lane == 0) barrier_arrive(FREE(stage));
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
      continue;
    }
    MULTIPLY_STAGES(steps);
    STORE_TILE();
  }
#if RESULT != HOPPER_ANY_RESULT
  if (t == 0) BULK_WAIT();
#endif
}
