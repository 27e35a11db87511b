// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for few rows, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group owns ROWS rows by COLUMNS columns of output, an item of it every WG_X-th chunk of 32 terms.
// Memory   Chunks of weights straight to registers, by 16 bytes, the next ones while those here are multiplied; input from a
//          cache, eight elements at once.
// Numerics Bits of a code among those of a power of two, whose place of 1 is where the code begins, make a float: what that is
//          more is taken away together with the zero, exactly, and no integer is converted. Float sums of a chunk, times its
//          scale; chunks of an item in order, then the items.
// Assumes  Rows of weights and of input begin at multiples of 16 bytes, terms are a multiple of 32; WG_X is a multiple of the sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/lanes/lanes.def"

layout(std430, binding = 0) readonly buffer Input { uvec4 input_vectors[]; };
layout(std430, binding = 1) readonly buffer Weight { uvec4 weight_vectors[]; };
TYPED_INPUT(scale, 2)
layout(std430, binding = 3) readonly buffer Zero { uint zero_words[]; };
TYPED_OUTPUT(y, 4)
PUSH_ARGS(QuantArgs);
#include "quantised/core/scales.glsl"

#define NIBBLES (FORMAT == QUANT_NIBBLES)
#define PLACES (NIBBLES ? 4u : 2u)   // of codes in half a word
#define VECTORS (NIBBLES ? 1u : 2u)  // of a chunk
#define SHIFT(place) ((NIBBLES ? 4u : 8u) * (place))
#define MASK(place) ((NIBBLES ? 15u : 255u) << SHIFT(place))
#define POWER(place) ((150u - SHIFT(place)) << 23)  // 2^23, in which the lowest bit is 1; 2^19, in which bit 4 is; ...
#define SUMS (ROWS * COLUMNS)
#define SHARES (WG_X / SUMS)  // of a sum, which items add up

shared float shared_sums[SUMS * (WG_X + SHARES)], shares[WG_X];
// Of a chunk for each column: its codes, the bits of its scale, and its zero. First of the chunk that is on its way.
uvec4 coming_codes[VECTORS * COLUMNS], codes[VECTORS * COLUMNS];
uint coming_scales[COLUMNS], coming_zeros[COLUMNS];
float scale_of[COLUMNS];
float base[PLACES * COLUMNS];  // what is taken away from a code of each place
uint powers[PLACES];           // what the bits of a code are turned in to be a float, of each place
float part[SUMS], sum[SUMS];
vec4 x[2u * ROWS];

// Columns behind the last one repeat it.
void fetch(uint column0, uint chunk) {
  const uint group = GROUP == 0u ? 0u : chunk / max(GROUP, 1u), last = args.n - 1u - column0;
  const uint at = (args.weight_offset + column0 * args.weight_row) / 16u + chunk * VECTORS, row = args.weight_row / 16u;
  const uint scale_at = args.scale_offset + column0 * args.scale_row + group;
  const uint zero_at = args.zero_offset + column0 * args.zero_row + group;
  [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
    const uint own = min(c, last);
    [[unroll]] for (uint v = 0u; v < VECTORS; ++v) coming_codes[VECTORS * c + v] = weight_vectors[at + own * row + v];
    coming_scales[c] = scale_bits(scale_at + own * args.scale_row);
    if (ZEROS != 0u) {
      const uint of_zero = zero_at + own * args.zero_row;
      coming_zeros[c] = NIBBLES ? LOAD_HALF_BYTE(zero_words, of_zero) : LOAD_BYTE(zero_words, of_zero);
    }
  }
}

// Eight elements of input from the 16 bytes (f32: 32) at element `at` on.
void load_eight(uint row, uint at) {
  if (INPUT_TYPE == DTYPE_F32) {
    x[2u * row] = uintBitsToFloat(input_vectors[at / 4u]);
    x[2u * row + 1u] = uintBitsToFloat(input_vectors[at / 4u + 1u]);
  } else {
    const uvec4 bits = input_vectors[at / 8u];
    x[2u * row] = widen_typed(bits.xy, INPUT_TYPE);
    x[2u * row + 1u] = widen_typed(bits.zw, INPUT_TYPE);
  }
}

// Codes of the half word in the low bits of `word` times elements of input from `first` of `four` on.
void multiply_half(uint word, uint c, uint four, uint first) {
  [[unroll]] for (uint i = 0u; i < PLACES; ++i) {
    const float number = uintBitsToFloat((word & MASK(i)) ^ powers[i]) - base[PLACES * c + i];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r)
      part[r * COLUMNS + c] = fma(number, x[2u * r + four][first + i], part[r * COLUMNS + c]);
  }
}

// The products of the chunk in `codes` join the sums.
void multiply(uint row0, uint chunk) {
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) part[i] = 0.0f;
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const uint row = min(row0 + r, args.m - 1u);  // behind the last one repeat it
      load_eight(r, args.input_offset + row * args.input_row + chunk * 32u + 8u * j);
    }
    [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
      if (NIBBLES) {
        const uint word = codes[c][j];
        multiply_half(word, c, 0u, 0u);
        multiply_half(word >> 16, c, 1u, 0u);
      } else {
        [[unroll]] for (uint h = 0u; h < 2u; ++h) {
          const uint word = codes[VECTORS * c + j / 2u][j % 2u * 2u + h];
          multiply_half(word, c, h, 0u);
          multiply_half(word >> 16, c, h, 2u);
        }
      }
    }
  }
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = fma(scale_of[i % COLUMNS], part[i], sum[i]);
}

// Sums of all items: of each, SHARES items add up a share, and one of them the shares.
void store(uint row0, uint column0, uint item) {
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) shared_sums[i * (WG_X + SHARES) + item] = sum[i];
  barrier();
  const uint first = item / SHARES * (WG_X + SHARES) + item % SHARES;
  float total = shared_sums[first];
  [[unroll]] for (uint i = 1u; i < SUMS; ++i) total += shared_sums[first + i * SHARES];
  shares[item] = total;
  barrier();
  const uint row = row0 + item / COLUMNS, column = column0 + item % COLUMNS;
  if (item < SUMS && row < args.m && column < args.n) {
    total = shares[item * SHARES];
    for (uint i = 1u; i < SHARES; ++i) total += shares[item * SHARES + i];
    store_y_steps(vec4(total, 0.0f, 0.0f, 0.0f), args.output_offset + row * args.output_row + column, 1u, 1u, args.output_type);
  }
}

void main() {
  const uint item = gl_LocalInvocationID.x, chunks = args.k / 32u, rounds = (chunks + WG_X - 1u) / WG_X;
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uint middle = is_signed ? (NIBBLES ? 8u : 128u) : 0u;
  [[unroll]] for (uint i = 0u; i < PLACES; ++i) {
    powers[i] = POWER(i) | middle << SHIFT(i);
    [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) base[PLACES * c + i] = uintBitsToFloat(powers[i]);
  }
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = 0.0f;
  const uint blocks_m = (args.m + ROWS - 1u) / ROWS, blocks_n = (args.n + COLUMNS - 1u) / COLUMNS;
  const uint units = blocks_m * blocks_n;
  // Blocks of rows one after the other: they share the weights.
  uint unit = gl_WorkGroupID.x, chunk = item;
  if (unit < units && chunk < chunks) fetch(unit / blocks_m * COLUMNS, chunk);
  while (unit < units) {
    const uint row0 = unit % blocks_m * ROWS, column0 = unit / blocks_m * COLUMNS;
    for (uint round = 0u; round < rounds; ++round) {
      const uint own = chunk;
      [[unroll]] for (uint i = 0u; i < VECTORS * COLUMNS; ++i) codes[i] = coming_codes[i];
      [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
        scale_of[c] = number_of_scale(coming_scales[c]);
        if (ZEROS != 0u) {
          [[unroll]] for (uint i = 0u; i < PLACES; ++i)
            base[PLACES * c + i] = uintBitsToFloat(POWER(i) | (coming_zeros[c] ^ middle) << SHIFT(i));
        }
      }
      chunk += WG_X;
      if (round + 1u == rounds) {
        unit += gl_NumWorkGroups.x;
        chunk = item;
      }
      if (unit < units && chunk < chunks) fetch(unit / blocks_m * COLUMNS, chunk);
      if (own < chunks) multiply(row0, own);
    }
    store(row0, column0, item);
    [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = 0.0f;
  }
}
