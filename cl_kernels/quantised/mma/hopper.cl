// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for few rows, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group owns a block of ROWS rows by 64 WARPGROUPS_N columns of output; a warpgroup multiplies 64 of these
//          columns and every WARPGROUPS_K-th step of terms, WARPGROUPS_K steps a turn. The last warpgroup copies. SHARES
//          work-groups, where there are such, share the turns of all blocks: who has the last one of a block adds the sums
//          that those before it leave in scratch.
// Memory   Steps of 128 bytes of rows of weights to a ring in local memory by tensor copies; weights become operand A in
//          registers, input is operand B. With X_BYTES input, of at most four rows, is put in order on its way to local memory
//          and stays there; else it comes with the weights, as quantised/mma/order left it. Scales as floats beside them.
// Numerics Code minus zero is exact in the type of input; float sums of products of 128 terms, times their scale; steps in
//          order, shares of the work-groups from the last to the first, shares of the warpgroups in order.
// Assumes  sm_90a (ptx_promotion.hpp), QUANT_HOPPER_VALID, rows of input and of weights begin at multiples of 16 bytes, terms
//          are a multiple of 8, scales are those of multiples of 128 terms; operands below 2^31 elements.
//
// Maps are in scratch: one for each work-group that puts input in order, else those that quantised/mma/order made.
// Barriers FULL(i) are completed by every copying item and the bytes of copies, FREE(i) by one arrival of every multiplying
// warp. SHARES take their blocks from the last one back, so that they wait for groups of lower numbers only, and for what
// those do first.
#include "operations/quantised_core/mma/hopper.h"
#include "quantised/mma/ordered.clh"
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper/tensor_map.clh"
#include "lib/hopper/wgmma.clh"

#define TERMS QUANT_HOPPER_TERMS
#define SPANS QUANT_HOPPER_SPANS
#define COLUMNS QUANT_HOPPER_COLUMNS
#define LINES QUANT_HOPPER_LINES
#define COPYING 128                      // items
#define MULTIPLYING (WG_X - COPYING)
#define BLOCK_BYTES (128 * ROWS)         // of 64 terms of input
#if ROWS < 8
#define COLUMNS_OF_B 8
#else
#define COLUMNS_OF_B ROWS
#endif
#define CHUNKS (8 / SPANS)               // of 128 terms
#define VECTORS (COLUMNS_OF_B / 8)         // of the sums of an item
#define STEPS (PAIRS / 2)                // of the instructions, of a chunk
#define SCALES_OF_ITEM (LINES * SPANS / COPYING)
// Of a stage.
#define WEIGHTS QUANT_HOPPER_INPUT_BYTES
#define INPUT (STAGES * QUANT_HOPPER_STAGE_BYTES)  // that stays
#define SCALES (WEIGHTS + QUANT_HOPPER_WEIGHT_BYTES)
#define CODES_OF_ZERO (SCALES + QUANT_HOPPER_SCALE_BYTES)
#define FULL(i) (memory + QUANT_HOPPER_BARRIERS_START + 8 * (i))
#define FREE(i) (memory + QUANT_HOPPER_BARRIERS_START + 8 * (STAGES + (i)))
// What an item begins with, 96 registers, is shared anew.
#if ROWS == 64
#define SPAN_LOOP ROLLED
#define COPYING_REGISTERS "32"
#define MULTIPLYING_REGISTERS "112"
#else
#define SPAN_LOOP UNROLL
#define COPYING_REGISTERS "64"
#define MULTIPLYING_REGISTERS "104"
#endif

// The number of this item, without a register for it meanwhile: all are in use.
INLINE uint item_again(void) {
  uint x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}

// Turns `from` to `to` of a block of output: the last of those before `end`, of a work-group whose first is `begin`.
struct Part {
  uint block, from, to;
};
INLINE struct Part part_before(uint end, uint begin, uint turns) {
  struct Part part;
  part.block = (end - 1) / turns;
  part.from = max(begin, part.block * turns) - part.block * turns, part.to = end - part.block * turns;
  return part;
}
#if SHARES
// Among the turns of all blocks, one block behind the other.
INLINE uint first_turn(uint group, uint turns, const struct QuantArgs* args) {
  const uint all = (args->m + ROWS - 1) / ROWS * ((args->n + COLUMNS - 1) / COLUMNS) * turns;
  return group * (all / SHARES) + min(group, all % SHARES);
}
#else
INLINE uint first_turn(uint group, uint turns, const struct QuantArgs* args) { return group * turns; }
#endif
// Where a block ends and more follows, copies wait until its sums have left local memory.
#define LEAVE_MEMORY(part)                               \
  if (SHARES != 0 && left != 0 && (part).to == turns) {  \
    FENCE_LOCAL();                                       \
    GROUP_SYNC(2, WG_X);                                 \
  }

KERNEL void quantised_hopper(const global scalar* restrict input, const global uchar* restrict weight,
                             const global void* restrict scale, const global uchar* restrict zero,
                             global void* restrict output, global uint* restrict scratch, const struct QuantArgs args) {
  local uchar memory_array[QUANT_HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint memory = LOCAL_ADDRESS(memory_array);
  const uint item = get_local_id(0), k = args.k;
  const uint blocks_m = (args.m + ROWS - 1) / ROWS;
  const uint steps = (k + TERMS - 1) / TERMS, turns = (steps + WARPGROUPS_K - 1) / WARPGROUPS_K;
  const uint begin = first_turn(get_group_id(0), turns, &args), end = first_turn(get_group_id(0) + 1, turns, &args);
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
#if X_BYTES
  global uint* own_map = scratch + get_group_id(0) * (TENSOR_MAP_BYTES / 4);
#else
  global uint* own_map = scratch;
#endif
  const global uchar *of_weights = (const global uchar*)own_map, *of_input = of_weights + TENSOR_MAP_BYTES;
#define COPY_STEP(turn, stage)                                                                                            \
  {                                                                                                                       \
    const uint to = memory + (stage) * QUANT_HOPPER_STAGE_BYTES;                                                          \
    barrier_expect(FULL(stage), QUANT_HOPPER_INPUT_BYTES + QUANT_HOPPER_WEIGHT_BYTES);                                    \
    UNROLL for (uint s = 0; s < WARPGROUPS_K; ++s) {                                                                      \
      const int step = (int)((turn) * WARPGROUPS_K + s);                                                                  \
      tensor_load(to + WEIGHTS + s * (128 * COLUMNS), of_weights, step * 128, 0, (int)column0, 0, FULL(stage));           \
      UNROLL for (uint b = 0; X_BYTES == 0 && b < TERMS / 64; ++b)                                                        \
        tensor_load(to + s * QUANT_HOPPER_SHARE_BYTES + b * BLOCK_BYTES, of_input, step * (int)TERMS + 64 * (int)b, 0,    \
                    (int)row0, 0, FULL(stage));                                                                           \
    }                                                                                                                     \
  }
  if (item == 0) {
    UNROLL for (uint i = 0; i < STAGES; ++i) {
      barrier_init(FULL(i), COPYING + 1);
      barrier_init(FREE(i), MULTIPLYING / 32);
    }
    FENCE_LOCAL();
  }
#if X_BYTES
  if (item >= MULTIPLYING && item < MULTIPLYING + 32) {
    const TensorMap map = {.start = weight + args.weight_offset, .element = 1, .columns = NIBBLES ? k / 2 : k, .heads = 1,
                           .rows = args.n, .batch = 1, .by_row = args.weight_row, .box_rows = COLUMNS};
    make_tensor_map_together(&map, memory + SCALES, own_map, item % 32);
    PUBLISH_TENSOR_MAPS();
  }
  if (item < MULTIPLYING) {
    const uint row0 = get_group_id(0) % blocks_m * ROWS;
    // Input stays: 16 bytes of each row, then the next ones.
    ROLLED for (uint i = item; i < ROWS * turns * (WARPGROUPS_K * TERMS / 8); i += MULTIPLYING) {
      const uint own = i % ROWS, eight = i / ROWS;
      uint4 x = (uint4)(0);
      if (row0 + own < args.m && 8 * eight < k)
        x = *(const global uint4*)(input + (args.input_offset + (row0 + own) * args.input_row + 8 * eight));
      uint words[4];
      ordered_words(x, words);
      UNROLL for (uint w = 0; w < 4; ++w)
        store_local(memory + INPUT + (ordered_place(eight, w) * ROWS + own) * 16 + ordered_word(eight, w) * 4, words[w]);
    }
    FENCE_LOCAL();
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (item >= MULTIPLYING) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 " COPYING_REGISTERS ";");
    const uint t = item - MULTIPLYING;
    const uint groups = GROUP == 0 ? 1 : ((k + 31) / 32 + GROUP - 1) / max(GROUP, 1);
    if (t == 0) {
      take_tensor_map(of_weights);
      if (X_BYTES == 0) take_tensor_map(of_input);
    }
    uint stage = 0, parity = 1;
    ROLLED for (uint left = end - begin; left != 0;) {
      const struct Part part = part_before(begin + left, begin, turns);
      left -= part.to - part.from;
      const uint row0 = part.block % blocks_m * ROWS, column0 = part.block / blocks_m * COLUMNS;
      ROLLED for (uint turn = part.from; turn < part.to; ++turn) {
        const uint to = memory + stage * QUANT_HOPPER_STAGE_BYTES;
        uint raw[SCALES_OF_ITEM];
#if ZEROS
        uint raw_zero[SCALES_OF_ITEM];
#endif
        UNROLL for (uint i = 0; i < SCALES_OF_ITEM; ++i) {
          const uint place = t + COPYING * i, line = place % LINES, column = min(column0 + line % COLUMNS, args.n - 1);
          const uint span = (turn * WARPGROUPS_K + line / COLUMNS) * SPANS + place / LINES;
          const uint group = GROUP == 0 ? 0 : min(span * 4 / max(GROUP, 1), groups - 1);
          raw[i] = scale_bits(scale, args.scale_offset + column * args.scale_row + group);
#if ZEROS
          const uint at = args.zero_offset + column * args.zero_row + group;
          raw_zero[i] = NIBBLES ? load_half_byte(zero, at) : load_byte(zero, at);
#endif
        }
        barrier_wait(FREE(stage), parity);
        if (t == 0) COPY_STEP(turn, stage)
        UNROLL for (uint i = 0; i < SCALES_OF_ITEM; ++i) {
          store_local(to + SCALES + (t + COPYING * i) * 4, as_uint(number_of_scale(raw[i])));
#if ZEROS
          store_local(to + CODES_OF_ZERO + (t + COPYING * i) * 4, raw_zero[i] ^ MIDDLE(is_signed));
#endif
        }
        barrier_arrive(FULL(stage));
        if (++stage == STAGES) stage = 0, parity ^= 1;
      }
      LEAVE_MEMORY(part);
    }
    return;
  }
  PTX("//@ setmaxnreg.inc.sync.aligned.u32 " MULTIPLYING_REGISTERS ";");
  const uint lane = item % 32, warp = (uint)uniform((int)(item / 32)), warpgroup = warp / 4;
  const uint share = warpgroup / WARPGROUPS_N, own_line = warpgroup * 64 + warp % 4 * 16 + lane / 4;
  const uint flip = FLIP(is_signed), block = lane / 8;
  // Rows 0 to 7 and 8 to 15 of a chunk, then of the next one.
  const uint own_weights = memory + WEIGHTS + (warpgroup * 64 + warp % 4 * 16 + block % 2 * 8 + lane % 8) * 128;
#if X_BYTES
  // Operand B has eight rows, 16 bytes of each behind one another: those behind the last one are what follows, and nobody reads
  // their products.
  const ulong own_input = (ulong)((memory + INPUT) >> 4) | (ulong)ROWS << 16 | 8ul << 32;
#define INPUT_OF(span, h, s) (own_input + (((turn * WARPGROUPS_K + share) * TERMS + (span) * 128 + (h) * 64 + (s) * 16) / 8 * ROWS))
#else
  const ulong own_input = wgmma_matrix(memory + share * QUANT_HOPPER_SHARE_BYTES, 0);
#define INPUT_OF(span, h, s) (own_input + (slot + ((span) * 2 + (h)) * BLOCK_BYTES + (s) * 32) / 16)
#endif
  uint stage = 0, parity = 0;
  ROLLED for (uint left = end - begin; left != 0;) {
    const struct Part part = part_before(begin + left, begin, turns);
    left -= part.to - part.from;
    float sum[COLUMNS_OF_B / 2], product[COLUMNS_OF_B / 2];
    UNROLL for (uint i = 0; i < COLUMNS_OF_B / 2; ++i) sum[i] = 0.0f;
    ROLLED for (uint turn = part.from; turn < part.to; ++turn) {
      const uint slot = stage * QUANT_HOPPER_STAGE_BYTES;
      barrier_wait(FULL(stage), parity);
      SPAN_LOOP for (uint span = 0; span < SPANS; ++span) {
        struct Zero zeros[2];
        UNROLL for (uint r = 0; r < 2; ++r) {
#if ZEROS
          zeros[r] = zero_of(load_local(memory + slot + CODES_OF_ZERO + (span * LINES + own_line + 8 * r) * 4));
#else
          zeros[r] = zero_of(MIDDLE(is_signed));
#endif
        }
        UNROLL for (uint h = 0; h < 2; ++h) {
          uint a[CHUNKS / 2 * STEPS * 4];
          UNROLL for (uint c = 0; c < CHUNKS / 2; c += 2) {
            uint codes[4];
            mma_load_blocks(codes, own_weights + slot + ((span * CHUNKS + h * (CHUNKS / 2) + c + block / 2) ^ lane % 8) * 16);
            UNROLL for (uint d = 0; d < 2; ++d) {
              uint low[PAIRS], high[PAIRS];
              numbers_of(codes[2 * d], flip, zeros[0], low);
              numbers_of(codes[2 * d + 1], flip, zeros[1], high);
              UNROLL for (uint s = 0; s < STEPS; ++s) {
                uint* to = a + ((c + d) * STEPS + s) * 4;
                to[0] = low[2 * s], to[1] = high[2 * s], to[2] = low[2 * s + 1], to[3] = high[2 * s + 1];
              }
            }
          }
          WGMMA_FENCE();
          UNROLL for (uint s = 0; s < 4; ++s) {
            const ulong x = INPUT_OF(span, h, s);
            if (h == 0 && s == 0)
              WGMMA_RK_FIRST(COLUMNS_OF_B, product, a[0], a[1], a[2], a[3], x);
            else
              WGMMA_RK(COLUMNS_OF_B, product, a[4 * s], a[4 * s + 1], a[4 * s + 2], a[4 * s + 3], x);
          }
          WGMMA_COMMIT();
        }
        const uint scales = memory + slot + SCALES + (span * LINES + own_line) * 4;
        const float by = as_float(load_local(scales)), by8 = as_float(load_local(scales + 32));
        WGMMA_WAIT(COLUMNS_OF_B, 0, product);
        UNROLL for (uint i = 0; i < COLUMNS_OF_B / 2; ++i) sum[i] = fma(product[i], i % 4 < 2 ? by : by8, sum[i]);
      }
      if (lane == 0) barrier_arrive(FREE(stage));
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    const uint here = item_again();
#if SHARES
    global float4* sums = (global float4*)(scratch + QUANT_HOPPER_SUMS_START(args.m, k)) + here;
    global int* done = (global int*)(scratch + QUANT_HOPPER_DONE_START(args.m, k));
    if (part.to != turns) {
      UNROLL for (uint i = 0; i < VECTORS; ++i)
        sums[(get_group_id(0) * VECTORS + i) * MULTIPLYING] = vload4(i, sum);
      GROUP_SYNC(1, MULTIPLYING);
      if (here == 0) store_release(done + get_group_id(0), 1);
      continue;
    }
    ROLLED for (uint group = get_group_id(0); first_turn(group, turns, &args) > part.block * turns;) {
      --group;
      if (here % 32 == 0)
        while (load_acquire(done + group) == 0) {
        }
      WARP_SYNC();
      UNROLL for (uint i = 0; i < VECTORS; ++i) {
        const float4 more = sums[(group * VECTORS + i) * MULTIPLYING];
        sum[4 * i] += more.s0, sum[4 * i + 1] += more.s1, sum[4 * i + 2] += more.s2, sum[4 * i + 3] += more.s3;
      }
    }
#endif
    // When all have multiplied, the sums of the shares lie where the stages were.
    GROUP_SYNC(1, MULTIPLYING);
    const uint own_column = here / 128 * 64 % COLUMNS + here / 32 % 4 * 16 + here % 32 / 4;
    UNROLL for (uint i = 0; i < COLUMNS_OF_B / 2; ++i) {
      const uint own_row = i / 4 * 8 + 2 * (here % 4) + i % 2, own = here / 128 / WARPGROUPS_N * ROWS + own_row;
      const uint to = memory + (own * QUANT_HOPPER_SUM_PITCH + own_column + i % 4 / 2 * 8) * 4;
      if (own_row < ROWS) store_local(to, as_uint(sum[i]));
    }
    GROUP_SYNC(1, MULTIPLYING);
    const uint row0 = part.block % blocks_m * ROWS, column0 = part.block / blocks_m * COLUMNS;
    ROLLED for (uint i = here; i < ROWS * COLUMNS; i += MULTIPLYING) {
      const uint own = row0 + i / COLUMNS, to = column0 + i % COLUMNS;
      if (own >= args.m || to >= args.n) continue;
      float total = 0.0f;
      UNROLL for (uint w = 0; w < WARPGROUPS_K; ++w)
        total += as_float(load_local(memory + ((w * ROWS + i / COLUMNS) * QUANT_HOPPER_SUM_PITCH + i % COLUMNS) * 4));
      store_typed_steps((float4)(total), output, args.output_offset + own * args.output_row + to, 1, 1, args.output_type);
    }
    LEAVE_MEMORY(part);
  }
}
