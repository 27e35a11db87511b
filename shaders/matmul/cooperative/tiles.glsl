// SPDX-License-Identifier: Apache-2.0
// Tiles of a[rows, terms] b[terms, columns] of 16-bit operands, each contiguous along an axis. What the products are of, the
// kernel says: it sets where the operands lie, and brings
//   fetch_next()             goes on to the next step of terms, and asks for its operands by fetch()
//   arrive()                 what is done to a step's operands when they are here
// and what lib/cooperative/tiles.glsl wants.
#ifndef TESSERA_MATMUL_COOPERATIVE_TILES_GLSL
#define TESSERA_MATMUL_COOPERATIVE_TILES_GLSL
#include "lib/cooperative/tiles.glsl"

layout(std430, binding = 0) readonly buffer A { uint16_t a[]; };
layout(std430, binding = 0) readonly buffer AVectors { uvec4 a8[]; };
layout(std430, binding = 1) readonly buffer B { uint16_t b[]; };
layout(std430, binding = 1) readonly buffer BVectors { uvec4 b8[]; };

void fetch_next();
void arrive();

uvec4 copies[COOPERATIVE_A_COPIES + COOPERATIVE_B_COPIES];  // this item's share of the step on its way

COOPERATIVE_LOAD_EIGHT(load_a, a, a8)
COOPERATIVE_LOAD_EIGHT(load_b, b, b8)
COOPERATIVE_ADD_TILES(add_tiles, memory, sum, COOPERATIVE_ROW_TILES, COOPERATIVE_COLUMN_TILES, BLOCK_K / MATRIX_K, A_BY_TERMS,
                      COOPERATIVE_A_STRIDE, B_BY_TERMS, COOPERATIVE_B_STRIDE)

// Of the arguments, what each step asks for, and where the next one begins: with these from their buffer, and tests at the
// edges of tiles, operands were asked for too late (H200, f16, 4096^3: 2.0 ms in place of 0.58).
uint terms, a_step, b_step, a_at, b_at, term;
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

// Of tile `tile` the row among those of tiles. Bands of eight rows are walked by columns: work-groups that run at the same time
// share what they read.
uint place_tile(uint tile, uint tiles_m, uint tiles_n) {
  const uint band = tile / (8u * tiles_n), in_band = tile % (8u * tiles_n), height = min(tiles_m - 8u * band, 8u);
  column0 = in_band / height * BLOCK_N;
  return 8u * band + in_band % height;
}

// Before the first step of terms, whose operands begin at a_at and b_at.
void begin_steps() {
  if (ALIGNED != 0u) {
    find_a(row0, rows, a_step);
    find_b(column0, columns, b_step);
  }
}

// Steps whose first one's operands are on their way.
void add_steps(uint steps) {
  for (uint step = 0u; step < steps; ++step) {
    arrive();
    barrier();
    store();
    barrier();
    if (step + 1u < steps) fetch_next();
    add_tiles(0u, group_row, COOPERATIVE_A_AREA, group_column);
  }
}

#endif  // TESSERA_MATMUL_COOPERATIVE_TILES_GLSL
