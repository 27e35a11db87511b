// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for at most 16 rows, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group takes 16 columns of output after another, as many apart as there are work-groups; a warp of it every
//          WARPS-th step of 128 bytes of their weights.
// Memory   Input to local memory, in the order of operands: all terms, or one part of them after another, and then the sums
//          of QUANT_STREAM_BAND blocks of columns wait there for the next part; weights and scales straight to registers,
//          AHEAD steps ahead and on into the next columns; sums of the warps through local memory, one barrier for each 16
//          columns.
// Numerics Code minus zero is exact in the type of input; float sums of products of half a step, times its scale; steps in
//          order, shares of the warps in order, parts in order.
// Assumes  sm_80, QUANT_STREAM_VALID; rows of weights begin at multiples of 16 bytes and are as long, scales are those of at
//          least half a step; input begins at multiples of 16 bytes; operands below 2^31 elements.
#include "operations/quantised_core/mma/stream.h"
#include "quantised/mma/numbers.clh"

#define TERMS QUANT_STREAM_TERMS
#define HALF_TERMS (TERMS / 2)
#define WORDS4 (NIBBLES ? 8 : 4) // uint4 of input of an item for a step
#define SPAN_CHUNKS (HALF_TERMS / QUANT_CHUNK)
#define BLOCKS_OF_8 (ROWS > 8 ? 2 : 1)   // rows of output that an instruction takes
#define STEP_BYTES (2 * TERMS * ROWS)    // of input

// Nothing may be done to what these load before it is used: it would wait there.
INLINE uint4 stream_weights(const global uchar* from, uint wanted) {
  uint4 x;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4]; }"
      : "=&r"(x.s0), "=&r"(x.s1), "=&r"(x.s2), "=&r"(x.s3)
      : "l"(from), "r"(wanted));
  return x;
}
#if ZEROS
INLINE uint stream_zero(const global uchar* zero, uint at) {
  uint x;
  asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(x) : "l"(zero + at));
  return x;
}
#endif

// Where a work-group is: blocks of columns in bands, in a band the parts of terms, in a part block after block.
struct Place {
  uint turn, block, first_turn, end_turn, first_block, end_block;
};
#define BAND_END(first_block) min(blocks, (first_block) + apart * QUANT_STREAM_BAND)
#define NEXT_PLACE(place, entered_part)                                         \
  (void)entered_part;                                                           \
  if (++place.turn == place.end_turn) {                                         \
    place.block += apart, place.turn = place.first_turn;                        \
    if (place.block >= place.end_block) {                                       \
      entered_part = turns > QUANT_STREAM_PART_TURNS;                           \
      if (place.end_turn == turns) {                                            \
        place.first_block = place.block, place.end_block = BAND_END(place.block); \
        place.first_turn = 0;                                                   \
      } else {                                                                  \
        place.first_turn = place.end_turn;                                      \
      }                                                                         \
      place.end_turn = min(turns, place.first_turn + QUANT_STREAM_PART_TURNS);  \
      place.block = place.first_block, place.turn = place.first_turn;           \
    }                                                                           \
  }

// A step of an item: two half steps of rows `row` and row + 8 of the 16 columns.
struct Step {
  uint4 codes[2][2];
  uint scales[2][2];
#if ZEROS
  uint zeros[2][2], upper;  // bytes; a bit for each, whether its upper half counts
#endif
};

KERNEL void quantised_stream(const global scalar* restrict input, const global uchar* restrict weight,
                             const global void* restrict scale, const global uchar* restrict zero,
                             global void* restrict output, const struct QuantArgs args) {
  local uchar memory_array[QUANT_STREAM_LOCAL_BYTES] __attribute__((aligned(16)));
  const uint memory = LOCAL_ADDRESS(memory_array), sums = memory + X_BYTES, kept = sums + 2 * QUANT_STREAM_SUM_BYTES;
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint row = lane / 4, quad = lane % 4, k = args.k;
  const uint steps = (k + TERMS - 1) / TERMS, turns = (steps + WARPS - 1) / WARPS;
  const uint blocks = (args.n + 15) / 16, first = get_group_id(0), apart = get_num_groups(0);
  const uint own_blocks = first < blocks ? (blocks - first + apart - 1) / apart : 0, total = own_blocks * turns;
  const uint row_bytes = NIBBLES ? k / 2 : k;
  const uint groups = GROUP == 0 ? 1 : ((k + 31) / 32 + GROUP - 1) / max(GROUP, 1);
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uint middle = MIDDLE(is_signed), flip = FLIP(is_signed);

  struct Step ring[AHEAD];
  struct Place use = {0, first, 0, min(turns, (uint)QUANT_STREAM_PART_TURNS), first, BAND_END(first)}, load = use;
  const uint last = args.n - 1;
#define LOAD(slot)                                                                                                     \
  {                                                                                                                    \
    const uint step = load.turn * WARPS + warp;                                                                        \
    UNROLL for (uint r = 0; r < 2; ++r) {                                                                              \
      const uint column = min(load.block * 16 + row + 8 * r, last);                                                    \
      const global uchar* line = weight + (size_t)(args.weight_offset + column * args.weight_row);                     \
      UNROLL for (uint h = 0; h < 2; ++h) {                                                                            \
        const uint at = step * 128 + 64 * h + 16 * quad;                                                               \
        ring[slot].codes[r][h] = stream_weights(line + at, at < row_bytes ? 1 : 0);                                    \
        const uint group = GROUP == 0 ? 0 : min((2 * step + h) * SPAN_CHUNKS / max(GROUP, 1), groups - 1);             \
        if (h == 0 || GROUP != 0) ring[slot].scales[r][h] = scale_bits(scale, args.scale_offset + column * args.scale_row + group); \
        LOAD_ZERO(slot)                                                                                                \
      }                                                                                                                \
    }                                                                                                                  \
    bool entered = false;                                                                                              \
    NEXT_PLACE(load, entered)                                                                                          \
  }
#if ZEROS
#define LOAD_ZERO(slot)                                                                  \
  const uint zero_at = args.zero_offset + column * args.zero_row + group;                \
  ring[slot].zeros[r][h] = stream_zero(zero, NIBBLES ? zero_at / 2 : zero_at);           \
  if (NIBBLES) ring[slot].upper = (r + h == 0 ? 0 : ring[slot].upper) | zero_at % 2 << (2 * r + h);
#else
#define LOAD_ZERO(slot)
#endif
  UNROLL for (uint d = 0; d < AHEAD; ++d) {
    if (d < total) LOAD(d)
  }

  // A part of input as operands of items: [step][half][word or two][row of output][quad] of eight terms.
#define FILL_INPUT()                                                                                                   \
  {                                                                                                                    \
    const uint step0 = use.first_turn * WARPS, end = min(steps, use.end_turn * WARPS) - step0;                         \
    for (uint i = item; i < end * (STEP_BYTES / 16); i += WG_X) {                                                      \
      const uint q = i % 4, own = i / 4 % ROWS, j = i / ROWS / 4 % (WORDS4 / 2), h = i / ROWS / 4 / (WORDS4 / 2);    \
      const uint term = step0 * TERMS + h * HALF_TERMS + q * (HALF_TERMS / 4) + 8 * j;                                 \
      uint4 x = (uint4)(0);                                                                                            \
      if (own < args.m && term < k) x = *(const global uint4*)(input + (args.input_offset + own * args.input_row + term)); \
      if (NIBBLES)                                                                                                     \
        x = (uint4)(take_bytes(x.s0, x.s2, 0x5410), take_bytes(x.s0, x.s2, 0x7632), take_bytes(x.s1, x.s3, 0x5410),    \
                    take_bytes(x.s1, x.s3, 0x7632));                                                                   \
      store_local4(memory + i * 16, x);                                                                                \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
  }
  FILL_INPUT()

  float sum[4 * BLOCKS_OF_8];
  UNROLL for (uint i = 0; i < 4 * BLOCKS_OF_8; ++i) sum[i] = 0.0f;
  uint parity = 0;
  const uint own_input = memory + (min(row, (uint)ROWS - 1) * 4 + quad) * 16;
  ROLLED for (uint done = 0; done < total; done += AHEAD) {
    UNROLL for (uint d = 0; d < AHEAD; ++d) {
      if (done + d < total) {
        const uint step = use.turn * WARPS + warp, input_at = own_input + (step - use.first_turn * WARPS) * STEP_BYTES;
        if (step < steps) {
          UNROLL for (uint h = 0; h < 2; ++h) {
            float part[2][4 * BLOCKS_OF_8];
            UNROLL for (uint i = 0; i < 4 * BLOCKS_OF_8; ++i) part[0][i] = 0.0f, part[1][i] = 0.0f;
            uint low[16], high[16];
            struct Zero zeros[2];
            UNROLL for (uint r = 0; r < 2; ++r) {
#if ZEROS
              const uint code = NIBBLES ? ring[d].zeros[r][h] >> (ring[d].upper >> (2 * r + h) & 1) * 4 & 15 : ring[d].zeros[r][h];
              zeros[r] = zero_of(code ^ middle);
#else
              zeros[r] = zero_of(middle);
#endif
            }
            numbers_of(ring[d].codes[0][h].s0, flip, zeros[0], low);
            numbers_of(ring[d].codes[0][h].s1, flip, zeros[0], low + PAIRS);
            numbers_of(ring[d].codes[0][h].s2, flip, zeros[0], low + 2 * PAIRS);
            numbers_of(ring[d].codes[0][h].s3, flip, zeros[0], low + 3 * PAIRS);
            numbers_of(ring[d].codes[1][h].s0, flip, zeros[1], high);
            numbers_of(ring[d].codes[1][h].s1, flip, zeros[1], high + PAIRS);
            numbers_of(ring[d].codes[1][h].s2, flip, zeros[1], high + 2 * PAIRS);
            numbers_of(ring[d].codes[1][h].s3, flip, zeros[1], high + 3 * PAIRS);
            UNROLL for (uint j = 0; j < WORDS4 / 2; ++j) {
              const uint a[4] = {low[4 * j], high[4 * j], low[4 * j + 1], high[4 * j + 1]};
              const uint b[4] = {low[4 * j + 2], high[4 * j + 2], low[4 * j + 3], high[4 * j + 3]};
              UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
                const uint4 x = load_local4(input_at + (h * (WORDS4 / 2) + j) * (64 * ROWS) + n * 512);
                mma_multiply_add(part[0] + 4 * n, part[0] + 4 * n + 2, a, x.s0, x.s1);
                mma_multiply_add(part[1] + 4 * n, part[1] + 4 * n + 2, b, x.s2, x.s3);
              }
            }
            UNROLL for (uint r = 0; r < 2; ++r) {
              const float by = number_of_scale(ring[d].scales[r][GROUP != 0 ? h : 0]);
              UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
                UNROLL for (uint c = 0; c < 2; ++c) {
                  const uint i = 4 * n + 2 * r + c;
                  sum[i] = fma(part[0][i] + part[1][i], by, sum[i]);
                }
              }
            }
          }
        }
        if (done + d + AHEAD < total) LOAD(d)
        if (use.turn + 1 == use.end_turn) {
          // [warp][row of output][column of 16]
          const uint to = sums + parity * QUANT_STREAM_SUM_BYTES;
          UNROLL for (uint i = 0; i < 4 * BLOCKS_OF_8; ++i) {
            const uint own = i / 4 * 8 + 2 * quad + i % 2;
            if (own < ROWS) store_local(to + ((warp * ROWS + own) * 16 + row + i % 4 / 2 * 8) * 4, as_uint(sum[i]));
            sum[i] = 0.0f;
          }
          barrier(CLK_LOCAL_MEM_FENCE);
          if (item < 16 * ROWS) {
            const uint place = kept + ((use.block - use.first_block) / apart * (16 * ROWS) + item) * 4;
            float result = use.first_turn != 0 ? as_float(load_local(place)) : 0.0f;
            UNROLL for (uint w = 0; w < WARPS; ++w) result += as_float(load_local(to + (w * ROWS * 16 + item) * 4));
            const uint own = item / 16, column = use.block * 16 + item % 16;
            if (use.end_turn != turns)
              store_local(place, as_uint(result));
            else if (own < args.m && column < args.n)
              store_typed_steps((float4)(result), output, args.output_offset + own * args.output_row + column, 1, 1, args.output_type);
          }
          parity ^= 1;
        }
        bool entered = false;
        NEXT_PLACE(use, entered)
        if (entered && done + d + 1 < total) FILL_INPUT()
      }
    }
  }
}
