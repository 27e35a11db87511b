// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T, weights in 8 or 4 bits with a scale for each group of terms, by cooperative matrices.
// Who      A work-group owns a tile of BLOCK_M rows by BLOCK_N columns of output, a sub-group GROUP_M by GROUP_N of it.
// Memory   Steps of BLOCK_K terms through registers to shared memory, weights two steps ahead, input one. There codes are
//          numbers of DTYPE, in the order in which they come out of words; input is put into the same order.
// Numerics Code minus zero is exact in DTYPE; products of a group of terms are added up in float, times its scale.
// Assumes  COOPERATIVE_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; terms of a
//          scale are a multiple of BLOCK_K; rows of input and weights lie by 16 bytes, terms are a multiple of 32.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "lib/cooperative/tiles.glsl"
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/cooperative/cooperative.def"

layout(std430, binding = 0) readonly buffer Input { uvec4 input_vectors[]; };
layout(std430, binding = 1) readonly buffer Weight { uvec4 weight_vectors[]; };
TYPED_INPUT(scale, 2)
layout(std430, binding = 3) readonly buffer Zero { uint zero_words[]; };
TYPED_OUTPUT(y, 4)
layout(std430, binding = 4) writeonly buffer OutputVectors { uvec4 y8[]; };
PUSH_ARGS(QuantArgs);
#include "quantised/core/scales.glsl"

#define NIBBLES (FORMAT == QUANT_NIBBLES)
#define CODES (NIBBLES ? 32u : 16u)      // of a vector
#define W_VECTORS (BLOCK_K / CODES)      // of a column in a step
#define W_COPIES ((BLOCK_N * W_VECTORS + WG_X - 1u) / WG_X)
#define S_COPIES ((BLOCK_N + WG_X - 1u) / WG_X)
#define AHEAD 2u
#define MATRICES (COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES)

shared float scales[BLOCK_N];
COOPERATIVE_SUM part[MATRICES];
uvec4 input_copies[COOPERATIVE_A_COPIES], weight_copies[AHEAD * W_COPIES];
uint zeros[AHEAD * W_COPIES], scale_copies[AHEAD * S_COPIES];
uint middle, terms;

COOPERATIVE_ADD_TILES(add_tiles, memory, part, COOPERATIVE_ROW_TILES, COOPERATIVE_COLUMN_TILES, BLOCK_K / MATRIX_K, 1u,
                      COOPERATIVE_A_STRIDE, 1u, COOPERATIVE_B_STRIDE)

// Lines that an operand does not have are its last one's: what comes of them goes nowhere. Behind the last term is nothing.
void fetch_input(uint term0) {
  [[unroll]] for (uint n = 0u; n < COOPERATIVE_A_COPIES; ++n) {
    const uint place = item + n * WG_X, term = term0 + place % COOPERATIVE_A_VECTORS * 8u;
    const uint row = min(row0 + place / COOPERATIVE_A_VECTORS, rows - 1u);
    input_copies[n] = uvec4(0u);
    if (term < terms) input_copies[n] = input_vectors[(args.input_offset + row * args.input_row + term) / 8u];
  }
}
void fetch_weights(uint slot, uint term0) {
  const uint group = GROUP == 0u ? 0u : term0 / (32u * max(GROUP, 1u));
  [[unroll]] for (uint n = 0u; n < W_COPIES; ++n) {
    const uint place = item + n * WG_X, vector = place % W_VECTORS, to = slot * W_COPIES + n;
    const uint column = min(column0 + place / W_VECTORS, columns - 1u);
    weight_copies[to] = uvec4(0u);
    if (term0 + vector * CODES < terms)
      weight_copies[to] = weight_vectors[(args.weight_offset + column * args.weight_row) / 16u + term0 / CODES + vector];
    if (ZEROS != 0u) {
      const uint at = args.zero_offset + column * args.zero_row + group;
      zeros[to] = NIBBLES ? LOAD_HALF_BYTE(zero_words, at) : LOAD_BYTE(zero_words, at);
    }
  }
  [[unroll]] for (uint n = 0u; n < S_COPIES; ++n) {
    const uint column = min(column0 + item + n * WG_X, columns - 1u);
    scale_copies[slot * S_COPIES + n] = scale_bits(args.scale_offset + column * args.scale_row + group);
  }
}

#include "quantised/cooperative/numbers.glsl"

void store(uint slot) {
  [[unroll]] for (uint n = 0u; n < COOPERATIVE_A_COPIES; ++n) {
    const uint place = item + n * WG_X;
    // Terms half a word of codes apart lie in words 0 and 2, 1 and 3, or 0 and 1, 2 and 3.
    const uvec4 x = NIBBLES ? input_copies[n] : input_copies[n].xzyw;
    if (place < COOPERATIVE_A_LINES * COOPERATIVE_A_VECTORS)
      memory[place / COOPERATIVE_A_VECTORS * COOPERATIVE_A_STRIDE + place % COOPERATIVE_A_VECTORS] =
          uvec4((x.x & 0xffffu) | x.z << 16, x.x >> 16 | (x.z & 0xffff0000u), (x.y & 0xffffu) | x.w << 16,
                x.y >> 16 | (x.w & 0xffff0000u));
  }
  [[unroll]] for (uint n = 0u; n < W_COPIES; ++n) {
    const uint place = item + n * WG_X, from = slot * W_COPIES + n;
    const uint to = COOPERATIVE_A_AREA + place / W_VECTORS * COOPERATIVE_B_STRIDE + place % W_VECTORS * (CODES / 8u);
    const uint zero = ZEROS != 0u ? zeros[from] ^ middle : middle;
    if (place < BLOCK_N * W_VECTORS) {
      [[unroll]] for (uint v = 0u; v < CODES / 8u; ++v) {
        if (NIBBLES) {
          const uint word = weight_copies[from][v];
          memory[to + v] = uvec4(pair_of(word, 0u, zero), pair_of(word, 1u, zero), pair_of(word, 2u, zero), pair_of(word, 3u, zero));
        } else {
          const uint one = weight_copies[from][2u * v % 4u], other = weight_copies[from][(2u * v + 1u) % 4u];
          memory[to + v] = uvec4(pair_of(one, 0u, zero), pair_of(one, 1u, zero), pair_of(other, 0u, zero), pair_of(other, 1u, zero));
        }
      }
    }
  }
  [[unroll]] for (uint n = 0u; n < S_COPIES; ++n) {
    if (item + n * WG_X < BLOCK_N) scales[item + n * WG_X] = number_of_scale(scale_copies[slot * S_COPIES + n]);
  }
}

void begin_part() {
  [[unroll]] for (uint i = 0u; i < MATRICES; ++i) part[i] = COOPERATIVE_SUM(0.0);
}

// The step whose weights are in `slot`.
void take_step(uint slot, uint step, uint steps) {
  barrier();
  store(slot);
  barrier();
  if (step + 1u < steps) fetch_input((step + 1u) * BLOCK_K);
  if (step + AHEAD < steps) fetch_weights(slot, (step + AHEAD) * BLOCK_K);
  add_tiles(0u, group_row, COOPERATIVE_A_AREA, group_column);
  if (step + 1u == steps || (GROUP != 0u && (step + 1u) * BLOCK_K % (32u * max(GROUP, 1u)) == 0u)) {
    [[unroll]] for (uint n = 0u; n < COOPERATIVE_COLUMN_TILES; ++n) {
      COOPERATIVE_SUM by;
      coopMatLoad(by, scales, group_column + n * MATRIX_N, 0u, kRowMajor);
      [[unroll]] for (uint m = 0u; m < COOPERATIVE_ROW_TILES; ++m)
        sum[m * COOPERATIVE_COLUMN_TILES + n] += part[m * COOPERATIVE_COLUMN_TILES + n] * by;
    }
    begin_part();
  }
}

void finish(uint row, uint column, vec4 x) {
  const uint count = min(columns - column, 4u), at = args.output_offset + row * args.output_row + column;
  if (count == 4u && at % 4u == 0u) {
    store_y_vector(x, at, args.output_type);
  } else {
    store_y_steps(x, at, 1u, count, args.output_type);
  }
}

bool is_plain() {
  return args.output_type == DTYPE && ((args.output_offset | args.output_row | columns) & 7u) == 0u;
}

void finish_plain(uint row, uint column, vec4 low, vec4 high) {
  y8[(args.output_offset + row * args.output_row + column) / 8u] = uvec4(narrow4(low), narrow4(high));
}

void main() {
  find_item();
  rows = args.m;
  columns = args.n;
  terms = args.k;
  middle = (args.features & QUANT_SIGNED) != 0u ? (NIBBLES ? 8u : 128u) : 0u;
  const uint blocks_m = (rows + BLOCK_M - 1u) / BLOCK_M, blocks_n = (columns + BLOCK_N - 1u) / BLOCK_N;
  const uint unit = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (unit >= blocks_m * blocks_n) return;
  // Blocks of rows one after the other: they share the weights.
  row0 = unit % blocks_m * BLOCK_M;
  column0 = unit / blocks_m * BLOCK_N;
  const uint steps = (terms + BLOCK_K - 1u) / BLOCK_K;
  begin_sums();
  begin_part();
  if (steps != 0u) fetch_input(0u);
  [[unroll]] for (uint slot = 0u; slot < AHEAD; ++slot) if (slot < steps) fetch_weights(slot, slot * BLOCK_K);
  for (uint step = 0u; step < steps; step += AHEAD) {
    take_step(0u, step, steps);
    if (step + 1u < steps) take_step(1u, step + 1u, steps);
  }
  finish_sums();
}
