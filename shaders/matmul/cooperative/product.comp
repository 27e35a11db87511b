// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of 16-bit operands, or shares of the sums to scratch; a and b contiguous along an axis.
// Who      A work-group owns a tile of BLOCK_M by BLOCK_N and a share of the terms, a sub-group GROUP_M by GROUP_N of it.
// Memory   Vectors of eight elements through registers to shared memory; the next step's are on their way while the products
//          of this one are taken. Sums through shared memory to rows of the result.
// Numerics Products of DTYPE, sums in float; terms in order; shares of a split are added in order by matmul/core/combine.
// Assumes  COOPERATIVE_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; ALIGNED is
//          no lie; operands below 2^31 elements.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "abi/shared.h"
#if DTYPE == DTYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#else
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#endif
#define STORAGE16 1
#include "lib/prelude.glsl"
#include "operations/matmul_core/core/args.h"
#include "operations/matmul_core/cooperative/cooperative.def"
#include "operations/matmul_core/cooperative/geometry.h"
#include "lib/cooperative/products.glsl"

layout(std430, binding = 0) readonly buffer A { uint16_t a[]; };
layout(std430, binding = 0) readonly buffer AVectors { uvec4 a8[]; };
layout(std430, binding = 1) readonly buffer B { uint16_t b[]; };
layout(std430, binding = 1) readonly buffer BVectors { uvec4 b8[]; };
layout(std430, binding = 2) writeonly buffer Scratch { vec4 scratch[]; };
#define MATMUL_BINDING 3
#define MATMUL_SCALES 0
#include "matmul/core/operands.glsl"

shared uvec4 memory[COOPERATIVE_AREA];
uvec4 copies[COOPERATIVE_A_COPIES + COOPERATIVE_B_COPIES];  // this item's share of the step on its way
COOPERATIVE_SUM sum[COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES];

COOPERATIVE_LOAD_EIGHT(load_a, a, a8)
COOPERATIVE_LOAD_EIGHT(load_b, b, b8)
COOPERATIVE_ADD_TILES(add_tiles, memory, sum, COOPERATIVE_ROW_TILES, COOPERATIVE_COLUMN_TILES, BLOCK_K / MATRIX_K, A_BY_TERMS,
                      COOPERATIVE_A_STRIDE, B_BY_TERMS, COOPERATIVE_B_STRIDE)

uint item, row0, column0;
// Of the arguments, what each step asks for, and where the next one begins: with these from their buffer, and tests at the
// edges of tiles, operands were asked for too late (H200, f16, 4096^3: 2.0 ms in place of 0.58).
uint rows, columns, terms, a_step, b_step, a_at, b_at, term, summand;
// Where an item's share of a step lies behind the step's first vector, of aligned operands.
uint places[COOPERATIVE_A_COPIES + COOPERATIVE_B_COPIES];

// Lines that the operand does not have are its last one's: what comes of them goes nowhere.
#define FIND_PLACES(name, BY_TERMS, VECTORS, COPIES, to)                                                                \
  void name(uint line0, uint lines, uint step) {                                                                        \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                                     \
      const uint place = item + n * WG_X, line = place / VECTORS, vector = place % VECTORS;                             \
      places[to + n] = BY_TERMS != 0u ? min(line0 + line, lines - 1u) * (step / 8u) + vector                            \
                                      : line * (step / 8u) + min(line0 / 8u + vector, lines / 8u - 1u);                 \
    }                                                                                                                   \
  }
// The share of a step that begins at vector `at`; zeros for terms from `left` on.
#define FETCH_ALIGNED(name, vectors, BY_TERMS, LINES, VECTORS, COPIES, to)                                              \
  void name(uint at, uint left) {                                                                                       \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                                     \
      const uint place = item + n * WG_X, first = BY_TERMS != 0u ? place % VECTORS * 8u : place / VECTORS;              \
      const bool mine = LINES * VECTORS % WG_X == 0u || place < LINES * VECTORS;                                        \
      copies[to + n] = uvec4(0u);                                                                                       \
      if (mine && (left == BLOCK_K || first < left)) copies[to + n] = vectors[at + places[to + n]];                     \
    }                                                                                                                   \
  }
FIND_PLACES(find_a, A_BY_TERMS, COOPERATIVE_A_VECTORS, COOPERATIVE_A_COPIES, 0u)
FIND_PLACES(find_b, B_BY_TERMS, COOPERATIVE_B_VECTORS, COOPERATIVE_B_COPIES, COOPERATIVE_A_COPIES)
FETCH_ALIGNED(fetch_a_aligned, a8, A_BY_TERMS, COOPERATIVE_A_LINES, COOPERATIVE_A_VECTORS, COOPERATIVE_A_COPIES, 0u)
FETCH_ALIGNED(fetch_b_aligned, b8, B_BY_TERMS, COOPERATIVE_B_LINES, COOPERATIVE_B_VECTORS, COOPERATIVE_B_COPIES,
              COOPERATIVE_A_COPIES)

// Others: vectors of lines from `line0` on, from element `first` on; zeros where there are none.
#define FETCH(name, load, LINES, VECTORS, COPIES, to)                                                                  \
  void name(uint at, uint step, uint line0, uint lines, uint first, uint count) {                                      \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                                    \
      const uint place = item + n * WG_X, line = place / VECTORS, element = first + place % VECTORS * 8u;              \
      copies[to + n] = uvec4(0u);                                                                                      \
      if (line < LINES && line0 + line < lines) copies[to + n] = load(at + (line0 + line) * step, element, count);     \
    }                                                                                                                  \
  }
FETCH(fetch_a, load_a, COOPERATIVE_A_LINES, COOPERATIVE_A_VECTORS, COOPERATIVE_A_COPIES, 0u)
FETCH(fetch_b, load_b, COOPERATIVE_B_LINES, COOPERATIVE_B_VECTORS, COOPERATIVE_B_COPIES, COOPERATIVE_A_COPIES)

void begin_summand(uint batch_a, uint batch_b) {
  const uint outer = summand / args.sums1, inner = summand % args.sums1;
  a_at = batch_a + outer * args.a_sum0 + inner * args.a_sum1;
  b_at = batch_b + outer * args.b_sum0 + inner * args.b_sum1;
}

void fetch() {
  if (ALIGNED != 0u) {
    const uint a_first = (a_at + (A_BY_TERMS != 0u ? term : term * a_step)) / 8u;
    const uint b_first = (b_at + (B_BY_TERMS != 0u ? term : term * b_step)) / 8u;
    if (term + BLOCK_K <= terms) {
      fetch_a_aligned(a_first, BLOCK_K);
      fetch_b_aligned(b_first, BLOCK_K);
    } else {
      fetch_a_aligned(a_first, terms - term);
      fetch_b_aligned(b_first, terms - term);
    }
    return;
  }
  if (A_BY_TERMS != 0u) {
    fetch_a(a_at, a_step, row0, rows, term, terms);
  } else {
    fetch_a(a_at, a_step, term, terms, row0, rows);
  }
  if (B_BY_TERMS != 0u) {
    fetch_b(b_at, b_step, column0, columns, term, terms);
  } else {
    fetch_b(b_at, b_step, term, terms, column0, columns);
  }
}

void store() {
  [[unroll]] for (uint n = 0u; n < COOPERATIVE_A_COPIES; ++n) {
    const uint place = item + n * WG_X;
    if (place < COOPERATIVE_A_LINES * COOPERATIVE_A_VECTORS)
      memory[place / COOPERATIVE_A_VECTORS * COOPERATIVE_A_STRIDE + place % COOPERATIVE_A_VECTORS] = copies[n];
  }
  [[unroll]] for (uint n = 0u; n < COOPERATIVE_B_COPIES; ++n) {
    const uint place = item + n * WG_X;
    if (place < COOPERATIVE_B_LINES * COOPERATIVE_B_VECTORS)
      memory[COOPERATIVE_A_AREA + place / COOPERATIVE_B_VECTORS * COOPERATIVE_B_STRIDE + place % COOPERATIVE_B_VECTORS] =
          copies[COOPERATIVE_A_COPIES + n];
  }
}

void main() {
  const uint lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  rows = args.m;
  columns = args.n;
  terms = args.k;
  a_step = A_BY_TERMS != 0u ? args.a.row : args.a.column;
  b_step = B_BY_TERMS != 0u ? args.b.column : args.b.row;
  const uint tiles_m = (rows + BLOCK_M - 1u) / BLOCK_M, tiles_n = (columns + BLOCK_N - 1u) / BLOCK_N;
  const uint tiles = tiles_m * tiles_n, unit = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (unit >= tiles * args.batches * args.splits) return;
  // Bands of eight rows of tiles are walked by columns: work-groups that run at the same time share what they read.
  const uint tile = unit % tiles, batch = unit / tiles % args.batches, split = unit / tiles / args.batches;
  const uint band = tile / (8u * tiles_n), in_band = tile % (8u * tiles_n), height = min(tiles_m - 8u * band, 8u);
  row0 = (8u * band + in_band % height) * BLOCK_M;
  column0 = in_band / height * BLOCK_N;
  const uint a_base = matmul_base(args.a, batch), b_base = matmul_base(args.b, batch);
  const uint k_steps = (terms + BLOCK_K - 1u) / BLOCK_K, steps = args.sums * k_steps, each = (steps + args.splits - 1u) / args.splits;
  const uint first = min(split * each, steps), last = min(first + each, steps);
  const uint group_row = gl_SubgroupID / (BLOCK_N / GROUP_N) * GROUP_M;
  const uint group_column = gl_SubgroupID % (BLOCK_N / GROUP_N) * GROUP_N;

  [[unroll]] for (uint i = 0u; i < COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES; ++i) sum[i] = COOPERATIVE_SUM(0.0);
  if (first < last) {
    if (ALIGNED != 0u) {
      find_a(row0, rows, a_step);
      find_b(column0, columns, b_step);
    }
    summand = first / k_steps;
    term = first % k_steps * BLOCK_K;
    begin_summand(a_base, b_base);
    fetch();
  }
  for (uint step = first; step < last; ++step) {
    barrier();
    store();
    barrier();
    if (step + 1u < last) {
      term += BLOCK_K;
      if (term >= terms) {
        term = 0u;
        ++summand;
        begin_summand(a_base, b_base);
      }
      fetch();
    }
    add_tiles(0u, group_row, COOPERATIVE_A_AREA, group_column);
  }
  barrier();
  const uint own = gl_SubgroupID * COOPERATIVE_OWN_AREA;
  // One round of code for all, for what follows is long. Matrices are never looked up, not even by a number that is compared
  // with a constant, for then NVIDIA's driver keeps all of them in memory: the first ones are stored, the others move up.
  [[dont_unroll]] for (uint round = 0u; round < COOPERATIVE_ROW_TILES; ++round) {
    [[unroll]] for (uint i = 0u; i < COOPERATIVE_COLUMN_TILES; ++i)
      coopMatStore(sum[i], memory, own + i * MATRIX_N / 4u, COOPERATIVE_OWN_STRIDE, kRowMajor);
    [[unroll]] for (uint i = COOPERATIVE_COLUMN_TILES; i < COOPERATIVE_ROW_TILES * COOPERATIVE_COLUMN_TILES; ++i)
      sum[i - COOPERATIVE_COLUMN_TILES] = sum[i];
    subgroupBarrier();
    [[dont_unroll]] for (uint at = lane; at < MATRIX_M * GROUP_N / 4u; at += LANES) {
      const uint line = at / (GROUP_N / 4u), vector = at % (GROUP_N / 4u);
      const uint row = row0 + group_row + round * MATRIX_M + line, column = column0 + group_column + 4u * vector;
      if (row < rows && column < columns) {
        const vec4 x = uintBitsToFloat(memory[own + line * COOPERATIVE_OWN_STRIDE + vector]);
        if (args.splits > 1u) {
          const uint vectors = (args.n + 3u) / 4u;
          scratch[args.partial / 4u + ((split * args.batches + batch) * args.m + row) * vectors + column / 4u] = x;
        } else {
          matmul_finish(batch, row, column, x);
        }
      }
    }
    subgroupBarrier();
  }
}
