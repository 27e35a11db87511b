// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for few rows, weights in 8 or 4 bits with a scale for each group of terms.
// Who      A work-group owns ROWS rows by COLUMNS columns of output, an item of it every WG_X-th chunk of 32 terms.
// Memory   Chunks of weights straight to registers, by 16 bytes; input from a cache, eight elements at once.
// Numerics A code times 1, 16, 256 or 4096, where its bits lie, is the lowest part of a float of 2^23: what that is more is
//          taken away together with the zero, exactly, and no integer is converted. Float sums of a chunk for each of these
//          places, added up from the lowest on, times the scale; chunks of an item in order, items as a tree.
// Assumes  Rows of weights and of input begin at multiples of 16 bytes, terms are a multiple of 32.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/scale.h"
#include "operations/quantised_core/lanes/lanes.def"

layout(std430, binding = 0) readonly buffer Input { uvec4 input_vectors[]; };
layout(std430, binding = 1) readonly buffer Weight { uvec4 weight_vectors[]; };
TYPED_INPUT(scale, 2)
layout(std430, binding = 3) readonly buffer Zero { uint zero_words[]; };
TYPED_OUTPUT(y, 4)
PUSH_ARGS(QuantArgs);

#define NIBBLES (FORMAT == QUANT_NIBBLES)
#define MAGIC 0x4b000000u  // 2^23
#define PLACES 4u          // of codes in half a word; two of bytes

shared float shared_sums[ROWS * COLUMNS * WG_X];
uvec4 codes[2u * COLUMNS];
float base[PLACES * COLUMNS];  // what is taken away from a code of each place
float scale_of[COLUMNS], part[PLACES * ROWS * COLUMNS], sum[ROWS * COLUMNS];
vec4 x[2u * ROWS];

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
  [[unroll]] for (uint i = 0u; i < (NIBBLES ? 4u : 2u); ++i) {
    const uint bits = NIBBLES ? 4u * i : 8u * i, mask = (NIBBLES ? 15u : 255u) << bits;
    const float number = uintBitsToFloat((word & mask) | MAGIC) - base[PLACES * c + i];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const uint p = PLACES * (r * COLUMNS + c) + i;
      part[p] = fma(number, x[2u * r + four][first + i], part[p]);
    }
  }
}

void main() {
  const uint item = gl_LocalInvocationID.x, chunks = args.k / 32u;
  const bool is_signed = (args.features & QUANT_SIGNED) != 0u;
  const uint flip = is_signed ? (NIBBLES ? 0x88888888u : 0x80808080u) : 0u;
  const uint middle = is_signed ? (NIBBLES ? 8u : 128u) : 0u;
  const uint blocks_m = (args.m + ROWS - 1u) / ROWS, blocks_n = (args.n + COLUMNS - 1u) / COLUMNS;
  for (uint unit = gl_WorkGroupID.x; unit < blocks_m * blocks_n; unit += gl_NumWorkGroups.x) {
    // Blocks of rows one after the other: they share the weights.
    const uint row0 = unit % blocks_m * ROWS, column0 = unit / blocks_m * COLUMNS;
    [[unroll]] for (uint i = 0u; i < ROWS * COLUMNS; ++i) sum[i] = 0.0f;
    for (uint chunk = item; chunk < chunks; chunk += WG_X) {
      [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
        // Columns behind the last one repeat it.
        const uint column = min(column0 + c, args.n - 1u);
        const uint at = (args.weight_offset + column * args.weight_row) / 16u + chunk * (NIBBLES ? 1u : 2u);
        codes[2u * c] = weight_vectors[at];
        if (!NIBBLES) codes[2u * c + 1u] = weight_vectors[at + 1u];
      }
      [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
        const uint column = min(column0 + c, args.n - 1u), group = GROUP == 0u ? 0u : chunk / max(GROUP, 1u);
        scale_of[c] = quant_scale(load_scale_steps(args.scale_offset + column * args.scale_row + group, 1u, 1u, SCALE_TYPE).x);
        uint zero = middle;
        if (ZEROS != 0u) {
          const uint at = args.zero_offset + column * args.zero_row + group;
          zero = (NIBBLES ? LOAD_HALF_BYTE(zero_words, at) : LOAD_BYTE(zero_words, at)) ^ middle;
        }
        [[unroll]] for (uint i = 0u; i < (NIBBLES ? 4u : 2u); ++i)
          base[PLACES * c + i] = uintBitsToFloat(MAGIC | zero << (NIBBLES ? 4u * i : 8u * i));
      }
      [[unroll]] for (uint i = 0u; i < PLACES * ROWS * COLUMNS; ++i) part[i] = 0.0f;
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          const uint row = min(row0 + r, args.m - 1u);  // behind the last one repeat it
          load_eight(r, args.input_offset + row * args.input_row + chunk * 32u + 8u * j);
        }
        [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
          if (NIBBLES) {
            const uint word = codes[2u * c][j] ^ flip;
            multiply_half(word, c, 0u, 0u);
            multiply_half(word >> 16, c, 1u, 0u);
          } else {
            [[unroll]] for (uint h = 0u; h < 2u; ++h) {
              const uint word = codes[2u * c + j / 2u][j % 2u * 2u + h] ^ flip;
              multiply_half(word, c, h, 0u);
              multiply_half(word >> 16, c, h, 2u);
            }
          }
        }
      }
      [[unroll]] for (uint i = 0u; i < ROWS * COLUMNS; ++i) {
        float total = part[PLACES * i];
        if (NIBBLES) {
          total = fma(part[PLACES * i + 1u], 1.0f / 16.0f, total);
          total = fma(part[PLACES * i + 2u], 1.0f / 256.0f, total);
          total = fma(part[PLACES * i + 3u], 1.0f / 4096.0f, total);
        } else {
          total = fma(part[PLACES * i + 1u], 1.0f / 256.0f, total);
        }
        sum[i] = fma(scale_of[i % COLUMNS], total, sum[i]);
      }
    }
    // As trees, all sums at once.
    [[unroll]] for (uint i = 0u; i < ROWS * COLUMNS; ++i) shared_sums[i * WG_X + item] = sum[i];
    for (uint width = WG_X / 2u; width > 0u; width /= 2u) {
      barrier();
      for (uint i = item; i < width * ROWS * COLUMNS; i += WG_X) {
        const uint to = i / width * WG_X + i % width;
        shared_sums[to] += shared_sums[to + width];
      }
    }
    barrier();
    for (uint i = item; i < ROWS * COLUMNS; i += WG_X) {
      const uint row = row0 + i / COLUMNS, column = column0 + i % COLUMNS;
      if (row < args.m && column < args.n)
        store_y_steps(vec4(shared_sums[i * WG_X], 0.0f, 0.0f, 0.0f), args.output_offset + row * args.output_row + column, 1u, 1u, args.output_type);
    }
    barrier();
  }
}
