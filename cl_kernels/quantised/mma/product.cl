// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group owns ROWS rows by 16 TILES WARPS_N columns of output, a warp 16 TILES columns of them and every
//          WARPS_K-th step of terms.
// Memory   Steps of 128 bytes of rows of weights to local memory by asynchronous copies, STAGES - 1 of them ahead, in
//          their order; input from a cache or, with INPUT_LOCAL, beside them.
// Numerics Code minus zero is exact in the type of input; float sums of products of a group, or of 128, 64 or 32 terms of
//          it, times its scale; steps in order, shares of the warps in order.
// Assumes  sm_80, QUANT_MMA_VALID; rows of weights and of input begin at multiples of 16 bytes, terms are a multiple of 8;
//          operands below 2^31 elements.
#include "operations/quantised_core/mma/geometry.h"
#include "quantised/mma/codes.clh"

#define TERMS QUANT_MMA_TERMS
#define COLUMNS QUANT_MMA_COLUMNS
#define BLOCKS_OF_8 (ROWS / 8)            // rows of output that an instruction takes
#define WORDS (NIBBLES ? 4 : 2)           // pairs of terms of an item among the chunk of 16 bytes that a quad shares
#define CHUNK_TERMS (NIBBLES ? 32 : 16)
// Chunks of 32 terms that are scaled together, and how many of such spans a step has.
#define SPAN (GROUP % 4 == 0 ? 4 : GROUP % 2 == 0 ? 2 : 1)
#define SPANS (TERMS / 32 / SPAN)
#define SPAN_CHUNKS (8 / SPANS)
#define SCALES (SPANS > 4 ? 2 : 1)        // of a row, that an item holds for its quad
#define AHEAD 3                           // steps

#if ZEROS
INLINE uint take_word(uint x, uint from) { return as_uint(warp_take(as_float(x), from)); }
#endif

#if NIBBLES
INLINE uint minus_biased(uint x, uint zero) {
#if DTYPE == DTYPE_BF16
  return times_plus(x, 0x3f803f80u, zero ^ 0x80008000u);
#else
  return minus(x, zero);
#endif
}
#endif

// What is taken away for a zero among codes from 0 on.
INLINE uint biased_zero(uint code) {
#if !NIBBLES && DTYPE == DTYPE_BF16
  return as_uint(8388608.0f + (float)code);
#else
  return BIASED | code | code << 16;
#endif
}

// The pairs of terms of a word of weights: 2 i and 2 i + 1 where the input's words are as they lie, and i and i + 4 where
// they are mixed.
INLINE void numbers_of(uint word, uint flip, uint zero, uint* pairs) {
#if NIBBLES && INPUT_LOCAL
  const uint high = word >> 4;
  UNROLL for (uint i = 0; i < 4; ++i)
    pairs[i] = minus_biased((take_bytes(word, high, i | (4 + i) << 8) & 0x000f000fu) ^ flip, zero);
#elif NIBBLES
  UNROLL for (uint i = 0; i < 4; ++i) pairs[i] = minus_biased((word >> (4 * i) & 0x000f000fu) ^ flip, zero);
#elif DTYPE == DTYPE_BF16
  float number[4];
  UNROLL for (uint i = 0; i < 4; ++i)
    number[i] = as_float(take_bytes(word ^ flip, 0x4b000000u, i | 0x7540)) - as_float(zero);
  UNROLL for (uint i = 0; i < 2; ++i) pairs[i] = take_bytes(as_uint(number[2 * i]), as_uint(number[2 * i + 1]), 0x7632);
#else
  UNROLL for (uint i = 0; i < 2; ++i)
    pairs[i] = minus(take_bytes(word ^ flip, BIASED, 2 * i | 0x5050 | (2 * i + 1) << 8), zero);
#endif
}

// Input's words of a chunk for the instructions: WORDS of each block of 8 rows.
#if INPUT_LOCAL
#define INPUT_ROW (2 * TERMS)
// Where 16 bytes are stored, so that the rows that are read together lie in different banks.
#define INPUT_CHUNK(chunk, row) ((chunk) ^ (NIBBLES ? (row) % 2 * 4 : (row) % 4 * 2))
INLINE void load_input(uint at, uint chunk, uint row, uint quad, uint* words) {
  UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
    const uint line = at + (8 * n + row) * INPUT_ROW;
    uint* to = words + n * WORDS;
#if NIBBLES
    const uint4 x = load_local4(line + INPUT_CHUNK(4 * chunk + quad, row) * 16);
    to[0] = x.s0, to[1] = x.s1, to[2] = x.s2, to[3] = x.s3;
#else
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(line + INPUT_CHUNK(2 * chunk + quad / 2, row) * 16 + quad % 2 * 8)
                 : "memory");
#endif
  }
}
#define CHUNKS_AT_ONCE 1
#else
#define CHUNKS_AT_ONCE (ROWS == 8 ? 4 : 2)
// `left`: terms from this item's first one of the chunk on.
INLINE void load_input(const global scalar* const* lines, uint term, uint terms, const bool* exists, uint* words) {
  UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
    const bool here = exists[n] && term < terms;
    uint* to = words + n * WORDS;
#if NIBBLES
    const uint4 x = here ? *(const global uint4*)(lines[n] + term) : (uint4)(0);
    // Pairs of terms i and i + 4, as half bytes that are 16 bits apart give weights.
    to[0] = take_bytes(x.s0, x.s2, 0x5410), to[1] = take_bytes(x.s0, x.s2, 0x7632);
    to[2] = take_bytes(x.s1, x.s3, 0x5410), to[3] = take_bytes(x.s1, x.s3, 0x7632);
#else
    const uint2 x = here ? *(const global uint2*)(lines[n] + term) : (uint2)(0);
    to[0] = x.s0, to[1] = x.s1;
#endif
  }
}
#endif


KERNEL void quantised_mma(const global scalar* restrict input, const global uchar* restrict weight,
                          const global void* restrict scale, const global uchar* restrict zero,
                          global void* restrict output, const struct QuantArgs args) {
  local uchar memory_array[QUANT_MMA_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint memory = LOCAL_ADDRESS(memory_array);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint warp_n = warp % WARPS_N, warp_k = warp / WARPS_N, row = lane / 4, quad = lane % 4;
  const uint blocks_m = (args.m + ROWS - 1) / ROWS, k = args.k;
  const uint row0 = get_group_id(0) % blocks_m * ROWS, column0 = get_group_id(0) / blocks_m * COLUMNS;
  const uint own0 = column0 + warp_n * (16 * TILES);
  const uint steps = (k + TERMS - 1) / TERMS, turns = (steps + WARPS_K - 1) / WARPS_K;
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uint middle = MIDDLE(is_signed), flip = FLIP(is_signed);

  // Weights: eight items copy 128 bytes of a row; rows behind the last one repeat it.
  const uint copied_row = lane / 8, copied_chunk = lane % 8, row_bytes = NIBBLES ? (k + 1) / 2 : k;
  uint from[4 * TILES], to[2];
  UNROLL for (uint i = 0; i < 4 * TILES; ++i)
    from[i] = args.weight_offset + min(own0 + copied_row + 4 * i, args.n - 1) * args.weight_row + 16 * copied_chunk;
  UNROLL for (uint i = 0; i < 2; ++i)
    to[i] = (copied_row + 4 * i) * 128 + (copied_chunk ^ (copied_row + 4 * i)) * 16;
  const uint own_weights = memory + warp * (16 * TILES * 128);
#define COPY_STEP(turn)                                                                                              \
  {                                                                                                                  \
    const uint slot = (turn) % STAGES * QUANT_MMA_STAGE_BYTES, at = ((turn) * WARPS_K + warp_k) * 128;               \
    const uint first = at + 16 * copied_chunk, bytes = first < row_bytes ? min(row_bytes - first, 16u) : 0;          \
    UNROLL for (uint i = 0; i < 4 * TILES; ++i)                                                                      \
      mma_copy_start(own_weights + slot + to[i % 2] + i / 2 * 1024, weight + (size_t)from[i] + (bytes ? at : 0), bytes); \
    COPY_INPUT(turn, slot)                                                                                           \
    MMA_COPY_COMMIT();                                                                                               \
  }
#if INPUT_LOCAL
  // Steps of input of all warps that share terms, by all items.
#define INPUT_CHUNKS (INPUT_ROW / 16)
#define COPY_INPUT(turn, slot)                                                                                       \
  UNROLL for (uint i = 0; i < WARPS_K * ROWS * INPUT_CHUNKS / WG_X; ++i) {                                           \
    const uint place = item + i * WG_X, chunk = place % INPUT_CHUNKS, line = place / INPUT_CHUNKS;                   \
    const uint term = ((turn) * WARPS_K + line / ROWS) * TERMS + 8 * chunk, own = row0 + line % ROWS;                \
    const bool exists = own < args.m && term < k;                                                                    \
    mma_copy_start(memory + slot + QUANT_MMA_WEIGHT_BYTES + line * INPUT_ROW + INPUT_CHUNK(chunk, line) * 16,        \
                   input + (args.input_offset + (exists ? own * args.input_row + term : 0)), exists ? 16 : 0);       \
  }
#else
#define COPY_INPUT(turn, slot)
  const global scalar* lines[BLOCKS_OF_8];
  bool exists[BLOCKS_OF_8];
  UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
    const uint own = row0 + 8 * n + row;
    exists[n] = own < args.m;
    lines[n] = input + (args.input_offset + min(own, args.m - 1) * args.input_row);
  }
#endif

  // Scales and zeros as they are stored, of the spans `quad` and quad + 4 of a step.
  const uint groups = GROUP == 0 ? 1 : ((k + 31) / 32 + GROUP - 1) / max(GROUP, 1);
  uint scale_at[2 * TILES], raw[AHEAD + 1][2 * TILES * SCALES];
#if ZEROS
  uint zero_at[2 * TILES], raw_zero[AHEAD + 1][2 * TILES * SCALES];
#endif
  UNROLL for (uint i = 0; i < 2 * TILES; ++i) {
    const uint column = min(own0 + 8 * i + row, args.n - 1);
    scale_at[i] = args.scale_offset + column * args.scale_row;
#if ZEROS
    zero_at[i] = args.zero_offset + column * args.zero_row;
#endif
  }
#if ZEROS
#define FETCH_ZERO(slot, i, j, group) \
  raw_zero[slot][(i) * SCALES + (j)] = NIBBLES ? load_half_byte(zero, zero_at[i] + (group)) : load_byte(zero, zero_at[i] + (group));
#else
#define FETCH_ZERO(slot, i, j, group)
#endif
#define FETCH_SCALES(slot, turn)                                                                                     \
  UNROLL for (uint j = 0; j < SCALES; ++j) {                                                                         \
    const uint chunk = ((turn) * WARPS_K + warp_k) * (TERMS / 32) + (4 * j + quad % SPANS) * SPAN;                   \
    const uint group = GROUP == 0 ? 0 : min(chunk / max(GROUP, 1), groups - 1);                                      \
    UNROLL for (uint i = 0; i < 2 * TILES; ++i) {                                                                    \
      raw[slot][i * SCALES + j] = SCALE_TYPE == DTYPE_F32 ? ((const global uint*)scale)[scale_at[i] + group]         \
                                                          : ((const global ushort*)scale)[scale_at[i] + group];      \
      FETCH_ZERO(slot, i, j, group)                                                                                  \
    }                                                                                                                \
  }

  float sum[TILES * BLOCKS_OF_8 * 4], part[TILES * BLOCKS_OF_8 * 4];
  UNROLL for (uint i = 0; i < TILES * BLOCKS_OF_8 * 4; ++i) sum[i] = 0.0f;
  ROLLED for (uint turn = 0; turn < STAGES - 1; ++turn) COPY_STEP(turn)
  UNROLL for (uint turn = 0; turn < AHEAD; ++turn) FETCH_SCALES(turn, turn)
  const uint block = lane / 8, block_row = block % 2 * 8 + lane % 8;
  uint slot_of = 0;
  ROLLED for (uint turn = 0; turn < turns; ++turn) {
    MMA_COPY_WAIT_BUT(STAGES - 2);
    if (INPUT_LOCAL) {
      barrier(CLK_LOCAL_MEM_FENCE);
    } else {
      WARP_SYNC();
    }
    COPY_STEP(turn + STAGES - 1)
    FETCH_SCALES(AHEAD, turn + AHEAD)
    const uint weights = own_weights + slot_of + block_row * 128;
#if INPUT_LOCAL
    const uint own_input = memory + slot_of + QUANT_MMA_WEIGHT_BYTES + warp_k * (ROWS * INPUT_ROW);
    uint words[1][BLOCKS_OF_8 * WORDS];
#else
    // This item's first term of the step; input is asked for before the instructions that are before its own.
    const uint term0 = (turn * WARPS_K + warp_k) * TERMS + quad * (2 * WORDS);
    uint words[8][BLOCKS_OF_8 * WORDS];
    UNROLL for (uint c = 0; c < CHUNKS_AT_ONCE; ++c) load_input(lines, term0 + c * CHUNK_TERMS, k, exists, words[c]);
#endif
    float factor[2 * TILES * SCALES];
    UNROLL for (uint i = 0; i < 2 * TILES * SCALES; ++i) factor[i] = number_of_scale(raw[0][i]);
    UNROLL for (uint c = 0; c < 8; c += 2) {
      uint codes[TILES][4];  // rows 0 to 7 and 8 to 15 of chunk c, then of the next one
      UNROLL for (uint t = 0; t < TILES; ++t)
        mma_load_blocks(codes[t], weights + t * 2048 + ((c + block / 2) ^ lane % 8) * 16);
#if !INPUT_LOCAL
      if (c % CHUNKS_AT_ONCE == 0 && c + CHUNKS_AT_ONCE < 8)
        UNROLL for (uint i = 0; i < CHUNKS_AT_ONCE; ++i)
          load_input(lines, term0 + (c + CHUNKS_AT_ONCE + i) * CHUNK_TERMS, k, exists, words[c + CHUNKS_AT_ONCE + i]);
#endif
      UNROLL for (uint d = 0; d < 2; ++d) {
        const uint chunk = c + d, span = chunk / SPAN_CHUNKS;
        if (chunk % SPAN_CHUNKS == 0)
          UNROLL for (uint i = 0; i < TILES * BLOCKS_OF_8 * 4; ++i) part[i] = 0.0f;
#if INPUT_LOCAL
        load_input(own_input, chunk, row, quad, words[0]);
        const uint* x = words[0];
#else
        const uint* x = words[chunk];
#endif
        UNROLL for (uint t = 0; t < TILES; ++t) {
          uint low[WORDS], high[WORDS], zeros[2];
          UNROLL for (uint h = 0; h < 2; ++h) {
#if ZEROS
            zeros[h] = biased_zero(take_word(raw_zero[0][(2 * t + h) * SCALES + span / 4], (lane & 28u) | span % 4) ^ middle);
#else
            zeros[h] = biased_zero(middle);
#endif
          }
          numbers_of(codes[t][2 * d], flip, zeros[0], low);
          numbers_of(codes[t][2 * d + 1], flip, zeros[1], high);
          UNROLL for (uint s = 0; s < WORDS / 2; ++s) {
            const uint a[4] = {low[2 * s], high[2 * s], low[2 * s + 1], high[2 * s + 1]};
            UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
              float* d_part = part + (t * BLOCKS_OF_8 + n) * 4;
              mma_multiply_add(d_part, d_part + 2, a, x[n * WORDS + 2 * s], x[n * WORDS + 2 * s + 1]);
            }
          }
        }
        if (chunk % SPAN_CHUNKS == SPAN_CHUNKS - 1)
          UNROLL for (uint t = 0; t < TILES; ++t) {
            UNROLL for (uint h = 0; h < 2; ++h) {
              const float by = warp_take(factor[(2 * t + h) * SCALES + span / 4], (lane & 28u) | span % 4);
              UNROLL for (uint n = 0; n < BLOCKS_OF_8; ++n) {
                UNROLL for (uint j = 0; j < 2; ++j) {
                  const uint i = (t * BLOCKS_OF_8 + n) * 4 + 2 * h + j;
                  sum[i] = fma(part[i], by, sum[i]);
                }
              }
            }
          }
      }
    }
    UNROLL for (uint a = 0; a < AHEAD; ++a) {
      UNROLL for (uint i = 0; i < 2 * TILES * SCALES; ++i) {
        raw[a][i] = raw[a + 1][i];
#if ZEROS
        raw_zero[a][i] = raw_zero[a + 1][i];
#endif
      }
    }
    slot_of = slot_of + QUANT_MMA_STAGE_BYTES == STAGES * QUANT_MMA_STAGE_BYTES ? 0 : slot_of + QUANT_MMA_STAGE_BYTES;
  }
  // Sums of the warps that share terms, in order.
  mma_copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);
  local float* sums = (local float*)memory_array;
  UNROLL for (uint i = 0; i < TILES * BLOCKS_OF_8 * 4; ++i) {
    const uint n = i / 4 % BLOCKS_OF_8, t = i / 4 / BLOCKS_OF_8;
    const uint column = warp_n * (16 * TILES) + 16 * t + i % 4 / 2 * 8 + row;
    sums[(warp_k * ROWS + 8 * n + 2 * quad + i % 2) * QUANT_MMA_SUM_PITCH + column] = sum[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  ROLLED for (uint i = item; i < ROWS * COLUMNS; i += WG_X) {
    const uint own = row0 + i / COLUMNS, column = column0 + i % COLUMNS;
    if (own >= args.m || column >= args.n) continue;
    float total = 0.0f;
    UNROLL for (uint w = 0; w < WARPS_K; ++w) total += sums[(w * ROWS + i / COLUMNS) * QUANT_MMA_SUM_PITCH + i % COLUMNS];
    store_typed_steps((float4)(total), output, args.output_offset + own * args.output_row + column, 1, 1, args.output_type);
  }
}
