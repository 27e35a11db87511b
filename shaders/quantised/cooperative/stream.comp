// SPDX-License-Identifier: Apache-2.0
// What     output = input weight^T for few rows, weights in 4 bits with a scale for each group of terms, by cooperative matrices.
// Who      A work-group takes MATRIX_M columns of output after another, as many apart as there are work-groups; a sub-group of it
//          every QUANT_STREAM_SUBGROUPS-th turn of 256 of their terms.
// Memory   Weights straight to registers, AHEAD turns ahead and on into the next columns, and there they become elements of a
//          matrix. Input to shared memory, in the order of these: all terms, or one part of them after another, and then the sums
//          of QUANT_STREAM_BAND blocks of columns wait there for the next part.
// Numerics Code minus zero is exact in DTYPE; products of 128 terms are added up in float, times their scale; turns in order,
//          sub-groups in order, parts in order.
// Assumes  Full sub-groups of LANES; the device has the shape for sub-groups with float sums; rows of input and weights lie by
//          16 bytes, terms are a multiple of 32, those of a scale of 128; a work-group has at most QUANT_STREAM_BAND blocks.
//
// Where lanes have the elements of lib/cooperative/own_elements.glsl, numbers of their own codes become them; otherwise they cross
// shared memory. Terms of a chunk come in the order in which codes come out of words, and so does the input.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define STORAGE16 1
#include "lib/cooperative/element.glsl"
#include "lib/prelude.glsl"
#include "lib/bytes.glsl"
#include "lib/typed.glsl"
#include "operations/quantised_core/args.h"
#include "operations/quantised_core/cooperative/stream.def"
#include "operations/quantised_core/cooperative/stream.h"
#include "lib/cooperative/own_elements.glsl"

layout(std430, binding = 0) readonly buffer Input { uvec4 input_vectors[]; };
layout(std430, binding = 1) readonly buffer Weight { uvec4 weight_vectors[]; };
TYPED_INPUT(scale, 2)
layout(std430, binding = 3) readonly buffer Zero { uint zero_words[]; };
TYPED_OUTPUT(y, 4)
PUSH_ARGS(QuantArgs);
#include "quantised/core/scales.glsl"

#define NIBBLES (FORMAT == QUANT_NIBBLES)
uint middle;  // 8 where codes and zeros are signed
#include "quantised/cooperative/numbers.glsl"

#define SUBGROUPS QUANT_STREAM_SUBGROUPS
#define BLOCKS 2u                                          // of 128 terms in a turn
#define COLUMNS QUANT_STREAM_LANE_COLUMNS
#define PARTS (BLOCKS * COLUMNS)                           // of a lane and turn: {block, column}
#define SCALES ((BLOCKS * MATRIX_M + LANES - 1u) / LANES)   // of a lane and turn, each of one block and column
#define ROW_STRIDE (ROWS == 1u ? 0u : QUANT_STREAM_ROW)
#define OUTPUTS (MATRIX_M * ROWS)                          // of a block of columns
#define MAY_FIT (COOPERATIVE_MAY_OWN && MATRIX_N == 8u)

shared uvec4 memory[QUANT_STREAM_INPUT], numbers[QUANT_STREAM_NUMBERS];
shared float sums[QUANT_STREAM_BUFFERS * QUANT_STREAM_SUMS], kept[QUANT_STREAM_KEPT];
shared float scale_rows[QUANT_STREAM_SCALES];
shared uint misfits;

uint item, lane, subgroup, blocks, own_blocks, turns;
uvec4 codes[AHEAD * PARTS];
uint scales[AHEAD * SCALES], zeros[AHEAD * PARTS];
COOPERATIVE_SUM sum;

// Where a sub-group is: parts of the terms, in a part its blocks of columns, in a block turns.
struct Place {
  uint part, block, turn;
};
uint turns_of(uint part) { return min(turns - part * PART_TURNS, PART_TURNS); }
void advance(inout Place place) {
  const bool next_block = place.turn + 1u == turns_of(place.part), next_part = next_block && place.block + 1u == own_blocks;
  place.turn = next_block ? 0u : place.turn + 1u;
  place.block = next_part ? 0u : next_block ? place.block + 1u : place.block;
  place.part += next_part ? 1u : 0u;
}
uint column_of(uint block) { return (gl_WorkGroupID.x + block * gl_NumWorkGroups.x) * MATRIX_M; }

// Of a lane's columns.
uint lane_column(uint c) { return lane / 4u + c * (LANES / 4u); }

uint group_of(uint chunk) { return GROUP == 0u ? 0u : chunk / max(GROUP, 1u); }

// Of columns and terms that there are none of, the last ones: what comes of them goes nowhere, or is multiplied by 0.
void fetch(uint slot, Place place) {
  const uint turn = (place.part * PART_TURNS + place.turn) * SUBGROUPS + subgroup, chunks = args.k / 32u;
  [[unroll]] for (uint i = 0u; i < PARTS; ++i) {
    const uint column = min(column_of(place.block) + lane_column(i % COLUMNS), args.n - 1u), to = slot * PARTS + i;
    const uint chunk = min((turn * BLOCKS + i / COLUMNS) * 4u + lane % 4u, chunks - 1u);
    codes[to] = weight_vectors[(args.weight_offset + column * args.weight_row) / 16u + chunk];
    if (ZEROS != 0u) {
      const uint at = args.zero_offset + column * args.zero_row + group_of(chunk);
      zeros[to] = LOAD_HALF_BYTE(zero_words, at);
    }
  }
  [[unroll]] for (uint i = 0u; i < SCALES; ++i) {
    const uint n = lane + i * LANES, column = min(column_of(place.block) + n % MATRIX_M, args.n - 1u);
    const uint chunk = min((turn * BLOCKS + n / MATRIX_M % BLOCKS) * 4u, chunks - 1u);
    scales[slot * SCALES + i] = scale_bits(args.scale_offset + column * args.scale_row + group_of(chunk));
  }
}

// 32 terms of four chunks: of each chunk a word of codes has eight, whose pairs are half a word apart.
void fill_input(uint part) {
  const uint units = turns_of(part) * (QUANT_STREAM_TURN / 32u), chunk0 = part * PART_TURNS * (QUANT_STREAM_TURN / 32u);
  [[dont_unroll]] for (uint n = item; n < ROWS * units; n += WG_X) {
    const uint row = n / units, unit = n % units, word = unit % 4u;
    const uint chunk = chunk0 + unit / 4u * 4u;
    uvec4 x[4];
    [[unroll]] for (uint q = 0u; q < 4u; ++q) {
      x[q] = uvec4(0u);
      if (row < args.m && (chunk + q) * 32u < args.k)
        x[q] = input_vectors[(args.input_offset + row * args.input_row) / 8u + (chunk + q) * 4u + word];
    }
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uvec4 pairs;
      [[unroll]] for (uint q = 0u; q < 4u; ++q) {
        const uint low = x[q][i / 2u], high = x[q][2u + i / 2u];
        pairs[q] = i % 2u == 0u ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
      }
      memory[row * QUANT_STREAM_ROW + unit / 4u * 16u + word * 4u + i] = pairs;
    }
  }
}

// Pair i of a word of a lane's column c.
#define PAIR(c, word, i) pair_of(codes[from + (c)][word], i, ZEROS != 0u ? zeros[from + (c)] ^ middle : middle)

// The turn whose weights are in `slot`, number `turn` of the part.
void multiply_elements(uint slot, uint turn) {
  COOPERATIVE_SUM product[BLOCKS];
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) product[b] = COOPERATIVE_SUM(0.0);
  const uint at = (turn * SUBGROUPS + subgroup) * (QUANT_STREAM_TERMS / 8u);
  [[unroll]] for (uint i = 0u; i < 8u * BLOCKS; ++i) {
    const uint b = i % BLOCKS, word = i / BLOCKS / 2u, pair = i / BLOCKS % 2u * 2u, from = slot * PARTS + b * COLUMNS;
    COOPERATIVE_RIGHT right;
    coopMatLoad(right, memory, at + b * 16u + word * 4u + pair, ROW_STRIDE, kColumnMajor);
    product[b] = coopMatMulAdd(
        left_of_pairs(uvec4(PAIR(0u, word, pair), PAIR(0u, word, pair + 1u), PAIR(1u, word, pair), PAIR(1u, word, pair + 1u))),
        right, product[b]);
  }
  const float scale = number_of_scale(scales[slot * SCALES]);
  [[unroll]] for (uint i = 0u; i < 2u * BLOCKS; ++i) {
    const uint b = i / 2u, c = i % 2u;
    const float by = subgroupShuffle(scale, b * MATRIX_M + lane_column(c));
    sum[2u * c] = fma(product[b][2u * c], by, sum[2u * c]);
    sum[2u * c + 1u] = fma(product[b][2u * c + 1u], by, sum[2u * c + 1u]);
  }
}

// The same by way of shared memory, in little code.
void multiply_numbers(uint slot, uint turn) {
  const uint at = (turn * SUBGROUPS + subgroup) * (QUANT_STREAM_TERMS / 8u), own = subgroup * MATRIX_M * 2u;
  subgroupBarrier();
  [[unroll]] for (uint i = 0u; i < SCALES; ++i) {
    const uint n = lane + i * LANES;
    if (n < BLOCKS * MATRIX_M) scale_rows[subgroup * (BLOCKS * MATRIX_M) + n] = number_of_scale(scales[slot * SCALES + i]);
  }
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    COOPERATIVE_SUM product = COOPERATIVE_SUM(0.0), by;
    const uint from = slot * PARTS + b * COLUMNS;
    [[dont_unroll]] for (uint i = 0u; i < 8u; ++i) {
      subgroupBarrier();
      [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
        [[unroll]] for (uint v = 0u; v < 2u; ++v) numbers[own + lane_column(c) * 2u + v][lane % 4u] = PAIR(c, 0u, v);
        // The next pairs come where these were, and in the end the first ones.
        const uvec4 own_codes = codes[from + c];
        codes[from + c] = i % 2u == 0u ? own_codes >> 8 | own_codes << 24 : (own_codes >> 24 | own_codes << 8).yzwx;
      }
      subgroupBarrier();
      [[unroll]] for (uint v = 0u; v < 2u; v += MATRIX_K / 8u) {
        COOPERATIVE_LEFT left;
        COOPERATIVE_RIGHT right;
        coopMatLoad(left, numbers, own + v, 2u, kRowMajor);
        coopMatLoad(right, memory, at + b * 16u + i * 2u + v, ROW_STRIDE, kColumnMajor);
        product = coopMatMulAdd(left, right, product);
      }
    }
    coopMatLoad(by, scale_rows, (subgroup * BLOCKS + b) * MATRIX_M, 0u, kColumnMajor);
    sum += product * by;
  }
}

void store(uint row, uint column, float total) {
  if (row < args.m && column < args.n)
    store_y_steps(vec4(total, 0.0, 0.0, 0.0), args.output_offset + row * args.output_row + column, 1u, 1u, args.output_type);
}

// The sums of a block of columns, over all sub-groups.
void finish(Place place, uint parity) {
  const uint at = parity % QUANT_STREAM_BUFFERS * QUANT_STREAM_SUMS;
  if (QUANT_STREAM_BUFFERS == 1u) barrier();
  coopMatStore(sum, sums, at + subgroup * (MATRIX_M * MATRIX_N), MATRIX_M, kColumnMajor);
  sum = COOPERATIVE_SUM(0.0);
  barrier();
  const bool last = (place.part + 1u) * PART_TURNS >= turns;
  [[dont_unroll]] for (uint n = item; n < OUTPUTS; n += WG_X) {
    const uint to = place.block * OUTPUTS + n;
    float total = place.part == 0u ? 0.0 : kept[to];
    [[unroll]] for (uint s = 0u; s < SUBGROUPS; ++s) total += sums[at + s * (MATRIX_M * MATRIX_N) + n];
    if (last) {
      store(n / MATRIX_M, column_of(place.block) + n % MATRIX_M, total);
    } else {
      kept[to] = total;
    }
  }
}

// Whether a lane has the elements of its own columns and terms.
bool elements_fit() {
  [[dont_unroll]] for (uint n = item; n < MATRIX_M * 2u; n += WG_X) numbers[n] = numbers_of_places(n);
  [[dont_unroll]] for (uint n = item; n < MATRIX_M * MATRIX_N; n += WG_X) sums[n] = float(n % MATRIX_M);
  if (item == 0u) misfits = 0u;
  barrier();
  COOPERATIVE_LEFT places;
  coopMatLoad(places, numbers, 0u, 2u, kRowMajor);
  COOPERATIVE_SUM rows;
  coopMatLoad(rows, sums, 0u, MATRIX_M, kColumnMajor);
  bool fit = own_elements_fit(places, lane);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) fit = fit && uint(rows[i]) == lane / 4u + i / 2u * 8u;
  if (!fit) atomicOr(misfits, 1u);
  barrier();
  return misfits == 0u;
}

uint done, total, parity;
bool fit;
Place use, load;

void begin(uint slot) {
  if (slot < total) {
    fetch(slot, load);
    advance(load);
  }
}

// The turn in `slot`, which is the next one's place then.
void take(uint slot) {
  if (done + slot < total) {
    if (use.block == 0u && use.turn == 0u) {
      barrier();
      fill_input(use.part);
      barrier();
    }
    if (fit) {
      multiply_elements(slot, use.turn);
    } else {
      multiply_numbers(slot, use.turn);
    }
    if (done + slot + AHEAD < total) {
      fetch(slot, load);
      advance(load);
    }
    if (use.turn + 1u == turns_of(use.part)) {
      finish(use, parity);
      parity ^= 1u;
    }
    advance(use);
  }
}

void main() {
  lane = gl_SubgroupInvocationID;
  subgroup = gl_SubgroupID;
  item = subgroup * LANES + lane;
  middle = (args.features & QUANT_SIGNED) != 0u ? 8u : 0u;
  blocks = (args.n + MATRIX_M - 1u) / MATRIX_M;
  own_blocks = gl_WorkGroupID.x < blocks ? (blocks - gl_WorkGroupID.x + gl_NumWorkGroups.x - 1u) / gl_NumWorkGroups.x : 0u;
  turns = (args.k + QUANT_STREAM_TURN - 1u) / QUANT_STREAM_TURN;
  total = own_blocks * turns;
  if (total == 0u) return;
  use = Place(0u, 0u, 0u);
  load = use;
  // One text for each slot: compilers that don't unroll a loop of all this would keep the slots in memory.
  begin(0u);
  if (AHEAD > 1u) begin(1u);
  if (AHEAD > 2u) begin(2u);
  if (AHEAD > 3u) begin(3u);
  fit = MAY_FIT && elements_fit();
  sum = COOPERATIVE_SUM(0.0);
  parity = 0u;
  [[dont_unroll]] for (done = 0u; done < total; done += AHEAD) {
    take(0u);
    if (AHEAD > 1u) take(1u);
    if (AHEAD > 2u) take(2u);
    if (AHEAD > 3u) take(3u);
  }
}
