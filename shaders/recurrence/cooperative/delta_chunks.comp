// SPDX-License-Identifier: Apache-2.0
// What     Of a chunk of 64 tokens of a delta rule what all columns share: the solution of its equations, the weights of its
//          outputs, factors of its tokens; its rows of keys and queries in order.
// Who      A work-group owns a chunk in a head. Sub-groups take squares of scores; then an item solves for a column, and weighs
//          one.
// Memory   Keys, queries, beta and decays once; to scratch those rows, three squares of elements, and factors.
// Numerics Float sums of products of DTYPE; the solution in floats, by rows, kept as the sum of two elements. Weights are
//          rounded to DTYPE. A chunk with factors above 1, or where something is not finite or too large, is marked.
// Assumes  RECUR_COOP_DELTA_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; rows at
//          multiples of 16 bytes; operands and scratch below 2^31 elements.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#define RECUR_AREA RECUR_COOP_DELTA_CHUNKS_AREA
#include "recurrence/cooperative/delta.glsl"

#define QUERIES RECUR_COOP_KEY_AREA
#define PITCH RECUR_COOP_DELTA_PITCH  // of a row of scores, in vectors
const uint SQUARES = SIXTEENS * (SIXTEENS + 1u), ROUNDS = RECUR_COOP_CEIL(SQUARES, RECUR_COOP_SUBGROUPS);
shared float factors[TOKENS];
shared float betas[TOKENS];
layout(std430, binding = 9) writeonly buffer ScratchRows { uvec4 scratch_rows[]; };
shared uint mark;
COOPERATIVE_SUM score[ROUNDS * TILES];

// Squares up to the diagonal, of keys and then of queries: rows and columns, and where rows are.
uvec2 square(uint n) {
  const uint at = n % (SQUARES / 2u), row = at < 1u ? 0u : at < 3u ? 1u : at < 6u ? 2u : 3u;
  return uvec2(row, at - row * (row + 1u) / 2u) * 16u;
}
void take_scores() {
  [[unroll]] for (uint j = 0u; j < ROUNDS * TILES; ++j) score[j] = COOPERATIVE_SUM(0.0);
  [[dont_unroll]] for (uint term = 0u; term < KEY_DIM / 8u; term += 2u) {
    [[unroll]] for (uint i = 0u; i < ROUNDS; ++i) {
      const uint n = i * RECUR_COOP_SUBGROUPS + gl_SubgroupID;
      const uvec2 at = square(n);
      const uint rows = (n < SQUARES / 2u ? 0u : QUERIES) + at.x * KEY_STRIDE + term;
      if (n < SQUARES)
        ADD_SIXTEENS(score, i * TILES, memory, rows, 1u, KEY_STRIDE, memory, at.y * KEY_STRIDE + term, 1u, KEY_STRIDE)
    }
  }
}
// Scores of keys, transposed, a column to a line; or those of queries.
void put_scores(bool of_keys) {
  [[unroll]] for (uint i = 0u; i < ROUNDS; ++i) {
    const uint n = i * RECUR_COOP_SUBGROUPS + gl_SubgroupID;
    if (n >= SQUARES || n < SQUARES / 2u != of_keys) continue;
    const uvec2 at = square(n);
    if (of_keys) {
      [[unroll]] for (uint j = 0u; j < TILES; ++j)
        coopMatStore(score[i * TILES + j], memory,
                     (at.y + j % COLUMN_TILES * MATRIX_N) * PITCH + (at.x + j / COLUMN_TILES * MATRIX_M) / 4u, PITCH,
                     kColumnMajor);
    } else {
      PUT_SIXTEENS(score, i * TILES, at.x * PITCH + at.y / 4u, PITCH)
    }
  }
}

// Column j of the triangle, from scores of keys on; of that of gradients, where beta is that of rows.
void weigh_column(uint j, bool by_rows) {
  float x = by_rows ? 1.0 : betas[j];
  [[dont_unroll]] for (uint i = 0u; i < TOKENS; i += 4u) {
    vec4 column = four(j * PITCH + i / 4u);
    [[unroll]] for (uint n = 0u; n < 4u; ++n) {
      x *= i + n > j ? factors[i + n] : 1.0;
      column[n] = i + n > j ? column[n] * x * (by_rows ? betas[i + n] : 1.0) : 0.0;
    }
    memory[j * PITCH + i / 4u] = floatBitsToUint(column);
  }
}
// Of sixteen rows, by fours from `begin` on, less a column of the triangle times what is known: up to its own row a column is 0.
#define SUBTRACT(begin, l, known) \
  [[unroll]] for (uint r = begin; r < 4u; ++r) x[r] -= four((l)*PITCH + row / 4u + r) * (known);
#define SUBTRACT_FOUR(begin, l, known) \
  SUBTRACT(begin, l, (known).x)        \
  SUBTRACT(begin, (l) + 1u, (known).y) \
  SUBTRACT(begin, (l) + 2u, (known).z) \
  SUBTRACT(begin, (l) + 3u, (known).w)
// Column j of the solution for a unit, in place of column j of the triangle: sixteen rows at a time, less what rows before
// them add, and then one by one. An item has each column, and they wait for each other.
void solve_column(bool has, uint j) {
  const uint column = j * PITCH;
  [[dont_unroll]] for (uint row = 0u; row < TOKENS; row += 16u) {
    vec4 x[4];
    [[unroll]] for (uint r = 0u; r < 4u; ++r)
      x[r] = mix(vec4(0.0), vec4(1.0), equal(uvec4(0u, 1u, 2u, 3u) + (row + 4u * r), uvec4(j)));
    if (has) {
      [[dont_unroll]] for (uint l = 0u; l < row; l += 4u) {
        const vec4 known = four(column + l / 4u);
        SUBTRACT_FOUR(0u, l, known)
      }
      SUBTRACT_FOUR(0u, row, x[0])
      SUBTRACT_FOUR(1u, row + 4u, x[1])
      SUBTRACT_FOUR(2u, row + 8u, x[2])
      SUBTRACT_FOUR(3u, row + 12u, x[3])
    }
    barrier();
    if (has) {
      [[unroll]] for (uint r = 0u; r < 4u; ++r) memory[column + row / 4u + r] = floatBitsToUint(x[r]);
    }
  }
}
// Column j of the weights, and the factors of token j.
void weigh_outputs(uint j) {
  float since = 1.0, until = 1.0;
  [[dont_unroll]] for (uint i = 0u; i < TOKENS; ++i) {
    since *= i <= j ? factors[i] : 1.0;
    until *= i > j ? factors[i] : 1.0;
    const uint at = i * PITCH + j / 4u;
    memory[at][j % 4u] = i >= j ? floatBitsToUint(uintBitsToFloat(memory[at][j % 4u]) * until) : 0u;
  }
  scratch_floats[CHUNK_NUMBERS(chunk) + j] = since;
  scratch_floats[CHUNK_NUMBERS(chunk) + TOKENS + j] = until;
  scratch_floats[CHUNK_NUMBERS(chunk) + 2u * TOKENS + j] = betas[j];
}

// The solution, of which all columns lie in memory, in halves.
void take_solution(bool by_rows, uint square) {
  put_scores(true);
  barrier();
  if (item < TOKENS) weigh_column(item, by_rows);
  barrier();
  solve_column(item < TOKENS, item);
  barrier();
  [[dont_unroll]] for (uint i = item; i < TOKENS * TOKENS / 4u; i += WG_X) {
    const uint row = i / (TOKENS / 4u), column = i % (TOKENS / 4u) * 4u;
    vec4 x = vec4(0.0);
    uvec2 low;
    [[unroll]] for (uint n = 0u; n < 4u; ++n)
      if (column + n <= row) x[n] = uintBitsToFloat(memory[(column + n) * PITCH + row / 4u][row % 4u]);
    scratch_pairs[CHUNK_SQUARE(chunk, square) * 2u + i] = take_halves(x, low);
    scratch_pairs[CHUNK_SQUARE(chunk, square + 1u) * 2u + i] = low;
  }
  barrier();
}

void main() {
  if (!find_chunk()) return;
  if (item == 0u) {
    mark = 0u;
    if (first == 0u) UNIT_MARK(unit) = 0u;
  }
  if (count == 0u) return;
  const uint key_at = first_row(args.key) + first * row_step(args.key);
  const uint query_at = first_row(args.query) + first * row_step(args.query);
  [[dont_unroll]] for (uint i = item; i < TOKENS * EIGHTS; i += WG_X) {
    const uint t = i / EIGHTS, vector = i % EIGHTS;
    uvec4 its_key = uvec4(0u), its_query = uvec4(0u);
    if (t < count) {
      its_key = key_eights[(key_at + t * row_step(args.key)) / 8u + vector];
      its_query = query_eights[(query_at + t * row_step(args.query)) / 8u + vector];
    }
    odd = odd || has_nonfinite(its_key) || has_nonfinite(its_query);
    memory[t * KEY_STRIDE + vector] = its_key;
    memory[QUERIES + t * KEY_STRIDE + vector] = its_query;
    scratch_rows[CHUNK_ROWS(chunk) + i] = its_key;
    scratch_rows[CHUNK_ROWS(chunk) + TOKENS * EIGHTS + i] = its_query;
  }
  if (item < TOKENS) {
    float its_beta = 0.0;
    if (item < count)
      its_beta = load_beta_steps(first_row(args.beta) + (first + item) * row_step(args.beta), 0u, 1u,
                                 args.types >> RECUR_TYPE_BETA & 3u).x;
    factors[item] = step_factor(item);
    betas[item] = its_beta;
    odd = odd || !(abs(its_beta) <= LARGEST);
  }
  barrier();
  take_scores();
  barrier();
  take_solution(false, SOLUTION);
  if (GOES_BACK != 0u) take_solution(true, SOLUTION_BACK);
  put_scores(false);
  barrier();
  if (item < TOKENS) weigh_outputs(item);
  barrier();
  [[dont_unroll]] for (uint i = item; i < TOKENS * TOKENS / 4u; i += WG_X) {
    const uint row = i / (TOKENS / 4u), column = i % (TOKENS / 4u) * 4u;
    const vec4 x = column <= row ? four(row * PITCH + column / 4u) : vec4(0.0);
    odd = odd || too_large(x);
    scratch_pairs[CHUNK_SQUARE(chunk, OUTPUT_WEIGHTS) * 2u + i] = narrow4(x);
  }
  if (odd) mark = 1u;
  barrier();
  if (item == 0u) CHUNK_MARK(chunk) = mark;
}
