// SPDX-License-Identifier: Apache-2.0
// What     Products of groups of rows with a matrix each, or of groups of terms, of 16-bit operands; each contiguous along an
//          axis.
// Who      A work-group owns a tile of BLOCK_M by BLOCK_N of an item of the work list, a sub-group GROUP_M by GROUP_N of it.
// Memory   As matmul/cooperative/product. Of operands that are contiguous along ragged terms vectors are read whole, and what
//          is of other groups is cleared on its way.
// Numerics Products of DTYPE, sums in float; terms in order; one rounding.
// Assumes  As matmul/cooperative/product; the work list is there, of items of BLOCK_M rows; ALIGNED: rows of a are not
//          contiguous along the axis that groups share.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "matmul/cooperative/tiles.glsl"
#include "lib/typed.glsl"
#include "operations/grouped_core/args.h"
#include "operations/grouped_core/cooperative/grouped.def"

layout(std430, binding = 2) readonly buffer List { uvec4 list[]; };
TYPED_INPUT(addend, 3)
TYPED_OUTPUT(result, 4)
layout(std430, binding = 4) writeonly buffer ResultVectors { uvec4 result8[]; };
PUSH_ARGS(GroupedArgs);

#define OVER_TERMS (RAGGED == GROUPED_TERMS)
#define TRIMS (OVER_TERMS && ALIGNED != 0u && (A_BY_TERMS != 0u || B_BY_TERMS != 0u))
uint group, lead;  // terms of the group before this one, which share a vector with its first ones
bool adds;

// Clears what of a step is before term `first` or from `end` on.
uvec4 trimmed(uvec4 x, uint term, uint first, uint end) {
  [[unroll]] for (uint i = 0u; i < 8u; ++i) if (term + i < first || term + i >= end) x[i / 2u] &= 0xffff0000u >> i % 2u * 16u;
  return x;
}
#define TRIM(name, BY_TERMS, VECTORS, COPIES, to)                                                                              \
  void name(uint first, uint end) {                                                                                            \
    [[unroll]] for (uint n = 0u; n < COPIES; ++n) {                                                                            \
      const uint place = item + n * WG_X, line = place / VECTORS;                                                              \
      if (BY_TERMS != 0u) {                                                                                                    \
        copies[to + n] = trimmed(copies[to + n], place % VECTORS * 8u, first, end);                                            \
      } else if (line < first || line >= end) {                                                                                \
        copies[to + n] = uvec4(0u);                                                                                            \
      }                                                                                                                        \
    }                                                                                                                          \
  }
TRIM(trim_a, A_BY_TERMS, COOPERATIVE_A_VECTORS, COOPERATIVE_A_COPIES, 0u)
TRIM(trim_b, B_BY_TERMS, COOPERATIVE_B_VECTORS, COOPERATIVE_B_COPIES, COOPERATIVE_A_COPIES)

void fetch_next() {
  term += BLOCK_K;
  fetch();
}

// Not where they are asked for: that would wait for them.
void arrive() {
  if (TRIMS && (term < lead || term + BLOCK_K > terms)) {
    const uint first = max(lead, term) - term;
    trim_a(first, terms - term);
    trim_b(first, terms - term);
  }
}

void finish(uint row, uint column, vec4 x) {
  const uint count = min(columns - column, 4u);
  if (adds) {
    const uint step = args.addend.column;
    x += load_addend_steps(args.addend.offset + group * args.addend.group + row * args.addend.row + column * step, step, count,
                           args.addend_type);
  }
  const uint step = args.result.column;
  const uint at = args.result.offset + group * args.result.group + row * args.result.row + column * step;
  if (step == 1u && count == 4u && at % 4u == 0u) {
    store_result_vector(x, at, args.result_type);
  } else {
    store_result_steps(x, at, step, count, args.result_type);
  }
}

bool is_plain() {
  return !adds && args.result_type == DTYPE && args.result.column == 1u &&
         ((args.result.offset | group * args.result.group | args.result.row | columns) & 7u) == 0u;
}

void finish_plain(uint row, uint column, vec4 low, vec4 high) {
  const uint at = args.result.offset + group * args.result.group + row * args.result.row + column;
  result8[at / 8u] = uvec4(narrow4(low), narrow4(high));
}

void main() {
  find_item();
  columns = args.n;
  a_step = A_BY_TERMS != 0u ? args.a.row : args.a.column;
  b_step = B_BY_TERMS != 0u ? args.b.column : args.b.row;
  const uint tiles_each = OVER_TERMS ? (args.m + BLOCK_M - 1u) / BLOCK_M : 1u;
  const uint tiles_m = list[0].x * tiles_each, tiles_n = (columns + BLOCK_N - 1u) / BLOCK_N;
  const uint unit = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (unit >= tiles_m * tiles_n) return;
  const uint tile = place_tile(unit, tiles_m, tiles_n);
  const uvec4 entry = list[1u + tile / tiles_each];
  const uint from = entry.y, end = entry.z;
  const bool is_held = entry.w != 0u;
  group = entry.x;
  row0 = OVER_TERMS ? tile % tiles_each * BLOCK_M : from;
  rows = OVER_TERMS ? args.m : end;
  lead = TRIMS ? from % 8u : 0u;
  terms = OVER_TERMS ? end - from + lead : is_held ? args.k : 0u;
  adds = (args.features & GROUPED_ADDEND) != 0u && (OVER_TERMS || !is_held);

  begin_sums();
  const uint steps = OVER_TERMS && from == end ? 0u : (terms + BLOCK_K - 1u) / BLOCK_K;
  if (steps != 0u) {
    const uint first = OVER_TERMS ? from - lead : 0u;
    a_at = args.a.offset + group * args.a.group + first * args.a.column;
    b_at = args.b.offset + group * args.b.group + first * args.b.row;
    term = 0u;
    begin_steps();
    fetch();
  }
  add_steps(steps);
  finish_sums();
}
