// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of 16-bit operands, or shares of the sums to scratch; a and b contiguous along an axis.
// Who      A work-group owns a tile of BLOCK_M by BLOCK_N and a share of the terms, a sub-group GROUP_M by GROUP_N of it.
// Memory   Vectors of eight elements through registers to shared memory; the next step's are on their way while the products
//          of this one are taken. Sums through shared memory to rows of the result.
// Numerics Products of DTYPE, sums in float; terms in order; shares of a split are added in order by matmul/core/combine.
// Assumes  COOPERATIVE_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; ALIGNED is
//          no lie; operands below 2^31 elements.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "matmul/cooperative/tiles.glsl"
#include "operations/matmul_core/core/args.h"

layout(std430, binding = 2) writeonly buffer Scratch { vec4 scratch[]; };
#define MATMUL_BINDING 3
layout(std430, binding = MATMUL_BINDING + 4) writeonly buffer ResultVectors { uvec4 result8[]; };
#define MATMUL_SCALES 0
#include "matmul/core/operands.glsl"

uint batch, split, summand, a_base, b_base;
uint result_base, result_step;  // of a plain result, in vectors
float alpha;

void begin_summand() {
  const uint outer = summand / args.sums1, inner = summand % args.sums1;
  a_at = a_base + outer * args.a_sum0 + inner * args.a_sum1;
  b_at = b_base + outer * args.b_sum0 + inner * args.b_sum1;
}

void fetch_next() {
  term += BLOCK_K;
  if (term >= terms) {
    term = 0u;
    ++summand;
    begin_summand();
  }
  fetch();
}

void arrive() {}

void finish(uint row, uint column, vec4 x) {
  if (args.splits > 1u) {
    const uint vectors = (args.n + 3u) / 4u;
    scratch[args.partial / 4u + ((split * args.batches + batch) * args.m + row) * vectors + column / 4u] = x;
  } else {
    matmul_finish(batch, row, column, x);
  }
}

bool is_plain() {
  const uint base = matmul_base(args.result, batch);
  result_base = base / 8u;
  result_step = args.result.row / 8u;
  alpha = args.alpha;
  return args.splits == 1u && (args.features & MATMUL_FINISHED) == 0u && (args.types >> MATMUL_TYPE_RESULT & 15u) == DTYPE &&
         args.result.column == 1u && ((base | args.result.row | columns) & 7u) == 0u;
}

void finish_plain(uint row, uint column, vec4 low, vec4 high) {
  result8[result_base + row * result_step + column / 8u] = uvec4(narrow4(alpha * low), narrow4(alpha * high));
}

void main() {
  find_item();
  rows = args.m;
  columns = args.n;
  terms = args.k;
  a_step = A_BY_TERMS != 0u ? args.a.row : args.a.column;
  b_step = B_BY_TERMS != 0u ? args.b.column : args.b.row;
  const uint tiles_m = (rows + BLOCK_M - 1u) / BLOCK_M, tiles_n = (columns + BLOCK_N - 1u) / BLOCK_N;
  const uint tiles = tiles_m * tiles_n, unit = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (unit >= tiles * args.batches * args.splits) return;
  row0 = place_tile(unit % tiles, tiles_m, tiles_n) * BLOCK_M;
  batch = unit / tiles % args.batches;
  split = unit / tiles / args.batches;
  a_base = matmul_base(args.a, batch);
  b_base = matmul_base(args.b, batch);
  const uint k_steps = (terms + BLOCK_K - 1u) / BLOCK_K, steps = args.sums * k_steps, each = (steps + args.splits - 1u) / args.splits;
  const uint first = min(split * each, steps), last = min(first + each, steps);

  begin_sums();
  if (first < last) {
    summand = first / k_steps;
    term = first % k_steps * BLOCK_K;
    begin_summand();
    begin_steps();
    fetch();
  }
  add_steps(last - first);
  finish_sums();
}
