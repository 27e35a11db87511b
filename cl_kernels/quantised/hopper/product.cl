// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for at most 64 rows, weights in 4 bits with a scale for each group of terms.
// Who      A work-group owns all rows by WG_X / 2 columns of output, a warpgroup 64 columns of them: rows of operand A.
// Memory   Steps of 128 bytes of rows of weights, and of 256 terms of input, to local memory by asynchronous copies,
//          STAGES - 1 of them ahead; weights become operand A in registers, input is operand B where it lies.
// Numerics Code minus zero is exact in the type of input; float sums of products of 128 terms, times their scale, in order.
// Assumes  sm_90a, QUANT_HOPPER_VALID; rows of weights and of input begin at multiples of 16 bytes, terms are a multiple of
//          32, scales are those of 128 terms or more; operands below 2^31 elements.
#include "lib/bytes.clh"
#include "lib/typed.clh"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/scale.h"
#include "operations/quantised_core/hopper/geometry.h"
#if DTYPE == DTYPE_BF16
#define MMA_TYPES MMA_BF16
#define WGMMA_TYPE "bf16"
#else
#define MMA_TYPES MMA_F16
#define WGMMA_TYPE "f16"
#endif
#include "lib/mma/instructions.clh"
#include "lib/hopper/wgmma.clh"

#define TERMS QUANT_HOPPER_TERMS
#define COLUMNS QUANT_HOPPER_COLUMNS
#define BLOCK_BYTES (128 * ROWS)  // of input, 64 terms

INLINE uint scale_bits(const global void* scale, uint at) {
  uint x;
#if SCALE_TYPE == DTYPE_F32
  asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(x) : "l"((const global uint*)scale + at));
#else
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(x) : "l"((const global ushort*)scale + at));
#endif
  return x;
}
INLINE float number_of_scale(uint bits) {
  return quant_scale(SCALE_TYPE == DTYPE_F32   ? as_float(bits)
                     : SCALE_TYPE == DTYPE_F16 ? float_of_half((ushort)bits)
                                               : as_float(bits << 16));
}

// Two terms of the codes of a byte of `word`, which `which` says, minus `less`, which is the zero and what a pair is more: the bits of a code are the
// lowest part of a number of 2^10 (bf16: 2^7), those of an upper half 16 times as much.
#if DTYPE == DTYPE_BF16
#define WHICH(quad) ((quad) | (4 + (quad)) << 8)
#define LESS_OF(zero) (0xc300c300u | (zero) | (zero) << 16)
INLINE uint pair_of(uint word, uint which, uint flip, uint less) {
  uint bytes, pair;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(word), "r"(word >> 4), "r"(which));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"((bytes & 0x000f000fu) ^ flip), "r"(0x3f803f80u), "r"(less));
  return pair;
}
#define BIASED 0x43004300u
#define SIGN_BITS 0x00080008u
#else
#define WHICH(quad) ((quad) | (quad) << 8)
#define LESS_OF(zero) (0xd400e400u | (zero) | (zero) << 20)
INLINE uint pair_of(uint word, uint which, uint flip, uint less) {
  uint bytes, pair;
  asm("prmt.b32 %0, %1, %1, %2;" : "=r"(bytes) : "r"(word), "r"(which));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"((bytes & 0x00f0000fu) ^ flip), "r"(0x2c003c00u), "r"(less));
  return pair;
}
#define BIASED 0x64006400u
#define SIGN_BITS 0x00800008u
#endif

KERNEL void quantised_hopper(const global scalar* restrict input, const global uchar* restrict weight,
                             const global void* restrict scale, const global uchar* restrict zero,
                             global void* restrict output, const struct QuantArgs args) {
  local uchar memory_array[QUANT_HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint memory = LOCAL_ADDRESS(memory_array);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32)), row = lane / 4, quad = lane % 4;
  const uint k = args.k, steps = (k + TERMS - 1) / TERMS, row_bytes = k / 2, column0 = get_group_id(0) * COLUMNS;
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uint middle = is_signed ? 8 : 0, flip = BIASED ^ (is_signed ? SIGN_BITS : 0u), which = WHICH(quad);
  const uint groups = GROUP == 0 ? 1 : ((k + 31) / 32 + GROUP - 1) / max(GROUP, 1);

  // Input, then weights: rows of 128 bytes, whose chunks are stored at chunk ^ row % 8.
#define WEIGHTS_AT QUANT_HOPPER_INPUT_BYTES
#define COPY_STEP(step)                                                                                              \
  {                                                                                                                  \
    const uint slot = memory + (step) % STAGES * QUANT_HOPPER_STAGE_BYTES;                                           \
    UNROLL for (uint i = 0; i < COLUMNS * 8 / WG_X; ++i) {                                                           \
      const uint place = item + i * WG_X, chunk = place % 8, line = place / 8, at = (step) * 128 + 16 * chunk;       \
      const bool exists = at < row_bytes;                                                                            \
      const uint from = args.weight_offset + min(column0 + line, args.n - 1) * args.weight_row + (exists ? at : 0);  \
      mma_copy_start(slot + WEIGHTS_AT + line * 128 + (chunk ^ line % 8) * 16, weight + (size_t)from, exists ? 16 : 0); \
    }                                                                                                                \
    UNROLL for (uint i = 0; i < ROWS * TERMS / 8 / WG_X; ++i) {                                                      \
      const uint place = item + i * WG_X, chunk = place % 8, line = place / 8 % ROWS, block = place / 8 / ROWS;      \
      const uint term = (step) * TERMS + 64 * block + 8 * chunk;                                                     \
      const bool exists = line < args.m && term < k;                                                                 \
      mma_copy_start(slot + block * BLOCK_BYTES + line * 128 + (chunk ^ line % 8) * 16,                              \
                     input + (args.input_offset + (exists ? line * args.input_row + term : 0)), exists ? 16 : 0);    \
    }                                                                                                                \
    MMA_COPY_COMMIT();                                                                                               \
  }

  const uint own_line = warp / 4 * 64 + warp % 4 * 16 + row;  // and the one 8 below
  uint raw[2][2][2];                                          // [step's parity][row][half of a step]
#if ZEROS
  uint raw_zero[2][2][2];
#define FETCH_ZERO(slot, r, h)                                        \
  const uint zero_at = args.zero_offset + column * args.zero_row + group; \
  raw_zero[slot][r][h] = load_half_byte(zero, zero_at);
#else
#define FETCH_ZERO(slot, r, h)
#endif
#define FETCH_SCALES(slot, step)                                                                   \
  UNROLL for (uint r = 0; r < 2; ++r) {                                                            \
    const uint column = min(column0 + own_line + 8 * r, args.n - 1);                               \
    UNROLL for (uint h = 0; h < 2; ++h) {                                                          \
      const uint group = GROUP == 0 ? 0 : min((2 * (step) + h) * 4 / max(GROUP, 1), groups - 1);   \
      raw[slot][r][h] = scale_bits(scale, args.scale_offset + column * args.scale_row + group);    \
      FETCH_ZERO(slot, r, h)                                                                       \
    }                                                                                              \
  }

  float sum[ROWS / 2], part[ROWS / 2];
  UNROLL for (uint i = 0; i < ROWS / 2; ++i) sum[i] = 0.0f;
  ROLLED for (uint step = 0; step < STAGES - 1; ++step) COPY_STEP(step)
  FETCH_SCALES(0, 0)
  const ulong first_input = wgmma_matrix(memory, 0);
  uint slot_of = 0;
  ROLLED for (uint step = 0; step < steps; ++step) {
    MMA_COPY_WAIT_BUT(STAGES - 2);
    PTX("fence.proxy.async.shared::cta;");
    barrier(CLK_LOCAL_MEM_FENCE);
    COPY_STEP(step + STAGES - 1)
    FETCH_SCALES(1, step + 1)
    const uint weights = memory + slot_of + WEIGHTS_AT + own_line * 128;
    const ulong own_input = first_input + slot_of / 16;
    UNROLL for (uint h = 0; h < 2; ++h) {
      uint less[2];
      UNROLL for (uint r = 0; r < 2; ++r) {
#if ZEROS
        less[r] = LESS_OF(raw_zero[0][r][h] ^ middle);
#else
        less[r] = LESS_OF(middle);
#endif
      }
      UNROLL for (uint c = 0; c < 4; ++c) {  // chunks of 32 terms, of which two are under way
        uint a[8];
        UNROLL for (uint r = 0; r < 2; ++r) {
          const uint4 words = load_local4(weights + r * 1024 + ((4 * h + c) ^ row) * 16);
          a[r] = pair_of(words.s0, which, flip, less[r]);
          a[2 + r] = pair_of(words.s1, which, flip, less[r]);
          a[4 + r] = pair_of(words.s2, which, flip, less[r]);
          a[6 + r] = pair_of(words.s3, which, flip, less[r]);
        }
        const ulong x = own_input + (2 * h + c / 2) * (BLOCK_BYTES / 16) + c % 2 * 4;
        WGMMA_FENCE();
        if (c == 0)
          WGMMA_RK_FIRST(ROWS, part, a[0], a[1], a[2], a[3], x);
        else
          WGMMA_RK(ROWS, part, a[0], a[1], a[2], a[3], x);
        WGMMA_RK(ROWS, part, a[4], a[5], a[6], a[7], x + 2);
        WGMMA_COMMIT();
        WGMMA_WAIT(ROWS, 1, part);
      }
      const float by = number_of_scale(raw[0][0][h]), by8 = number_of_scale(raw[0][1][h]);
      WGMMA_WAIT(ROWS, 0, part);
      UNROLL for (uint i = 0; i < ROWS / 2; ++i) sum[i] = fma(part[i], i % 4 < 2 ? by : by8, sum[i]);
    }
    UNROLL for (uint r = 0; r < 2; ++r) {
      UNROLL for (uint h = 0; h < 2; ++h) {
        raw[0][r][h] = raw[1][r][h];
#if ZEROS
        raw_zero[0][r][h] = raw_zero[1][r][h];
#endif
      }
    }
    slot_of = slot_of + QUANT_HOPPER_STAGE_BYTES == QUANT_HOPPER_LOCAL_BYTES ? 0 : slot_of + QUANT_HOPPER_STAGE_BYTES;
  }
  mma_copy_wait();
  UNROLL for (uint i = 0; i < ROWS / 2; ++i) {
    const uint own = i / 4 * 8 + 2 * quad + i % 2, column = column0 + own_line + i % 4 / 2 * 8;
    if (own < args.m && column < args.n)
      store_typed_steps((float4)(sum[i]), output, args.output_offset + own * args.output_row + column, 1, 1, args.output_type);
  }
}
