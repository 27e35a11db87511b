// SPDX-License-Identifier: Apache-2.0
// What     Products of groups of rows with a matrix each, of groups of terms, or of blocks of terms that a table places.
// Who      A work-group is one item and owns up to BLOCK_M rows by `panels` panels of an item of the work list.
// Memory   Blocks of a and panels of b as floats in private memory, which the second cache holds; sums in registers,
//          between blocks of terms in private memory. Nothing of other groups is read.
// Numerics Float, terms in order; one rounding.
// Assumes  Operands below 2^31 elements; the work list is there.
#include "lib/cpu/products.clh"
#include "lib/cpu/typed.clh"
#include "operations/grouped_core/args.h"

#define PANEL (2 * VECTOR_WIDTH)
#define PANELS 4  // of an item, at most

INLINE floatv grouped_add(floatv x, floatv y, floatv sum) { return fma(x, y, sum); }
PANEL_ADD_PRODUCTS(add_tile, const float*, int, ROWS, 2, grouped_add, NO_AHEAD)
PANEL_ADD_PRODUCTS(add_row, const float*, int, 1, 2, grouped_add, NO_AHEAD)

// outer x inner elements as rows of `width` floats, zeros up to the next vector. What runs along the outer axis in memory
// is turned in squares.
INLINE void grouped_gather(const global void* from, size_t at, uint outer_step, uint inner_step, int outer, int inner,
                           uint type, float* to, int width) {
  int r = 0;
  if (inner_step != 1 && outer_step == 1) {
    for (; r + VECTOR_WIDTH <= outer; r += VECTOR_WIDTH) {
      for (int c = 0; c < inner; c += VECTOR_WIDTH) {
        floatv x[VECTOR_WIDTH];
        UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i)
          x[i] = c + i < inner ? load_typed_whole(from, at + (size_t)(c + i) * inner_step + r, type) : (floatv)(0.0f);
        transpose(x);
        UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) vstorev(x[i], 0, to + (r + i) * width + c);
      }
    }
  }
  for (; r < outer; ++r)
    for (int c = 0; c < inner; c += VECTOR_WIDTH)
      vstorev(load_typed_part(from, at + (size_t)r * outer_step + (size_t)c * inner_step, inner_step, inner - c, type),
              0, to + r * width + c);
}

KERNEL void grouped_product_cpu(const global void* restrict a, const global void* restrict b,
                                const global uint4* restrict list, const global void* restrict addend,
                                global void* restrict result, const struct GroupedArgs args) {
  const bool over_terms = RAGGED == GROUPED_TERMS, over_rows = RAGGED == GROUPED_ROWS;
  const uint items = list[0].s0, blocks_each = over_rows ? 1 : (args.m + BLOCK_M - 1) / BLOCK_M;
  const uint panels = (args.n + PANEL - 1) / PANEL, blocks_n = (panels + args.panels - 1) / args.panels;
  const uint unit = get_group_id(0), block = unit / blocks_n;
  if (block >= items * blocks_each) return;
  const uint4 entry = list[1 + block / blocks_each];
  const uint group = entry.s0, from = entry.s1;
  const bool is_held = entry.s3 != 0;
  const uint row0 = over_rows ? from : block % blocks_each * BLOCK_M;
  const int rows = (int)min((over_rows ? entry.s2 : args.m) - row0, (uint)BLOCK_M);
  const uint terms = over_terms ? entry.s2 - from : is_held ? args.k : 0;
  const uint column0 = unit % blocks_n * args.panels * PANEL;
  const int columns = (int)min(args.n - column0, args.panels * PANEL);
  const size_t a_at = args.a.offset + (size_t)group * args.a.group + (size_t)row0 * args.a.row +
                      (over_terms ? (size_t)from * args.a.column : 0);
  const size_t b_at = args.b.offset + (size_t)group * args.b.group + (size_t)column0 * args.b.column +
                      (over_terms ? (size_t)from * args.b.row : 0);
  float kept[PANELS * BLOCK_M * PANEL] __attribute__((aligned(64)));
  float block_a[BLOCK_M * BLOCK_K] __attribute__((aligned(64)));
  floatv panel_b[2 * BLOCK_K];
  for (int i = 0; i < PANELS * BLOCK_M * PANEL; i += VECTOR_WIDTH) vstorev((floatv)(0.0f), 0, kept + i);
  // Parts of terms: of those that blocks have, one block after the other.
  const uint parts_each = (terms + BLOCK_K - 1) / BLOCK_K;
  const uint parts = RAGGED == GROUPED_BLOCKS ? parts_each * (entry.s2 - from) : parts_each;
  for (uint part = 0; part < parts; ++part) {
    const uint term = part % parts_each * BLOCK_K;
    const int count = (int)min(terms - term, (uint)BLOCK_K);
    size_t a_from = a_at, b_from = b_at;
    if (RAGGED == GROUPED_BLOCKS) {
      const global uint* entries = (const global uint*)list + args.table + 2 * (from + part / parts_each);
      a_from += entries[0];
      b_from += entries[1];
    }
    grouped_gather(a, a_from + (size_t)term * args.a.column, args.a.row, args.a.column, rows, count, A_TYPE, block_a,
                   BLOCK_K);
    for (int column = 0; column < columns; column += PANEL) {
      const int width = min(columns - column, PANEL);
      if (width <= VECTOR_WIDTH)
        for (int i = 0; i < count; ++i) panel_b[2 * i + 1] = (floatv)(0.0f);
      grouped_gather(b, b_from + (size_t)term * args.b.row + (size_t)column * args.b.column, args.b.row, args.b.column,
                     count, width, B_TYPE, (float*)panel_b, PANEL);
      float* keep = kept + column * BLOCK_M;
      int row = 0;
      for (; row + ROWS <= rows; row += ROWS) {
        floatv sum[ROWS][2];
        UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
            sum[r][j] = vloadv(2 * (row + r) + j, keep);
        add_tile(sum, block_a + row * BLOCK_K, BLOCK_K, 1, panel_b, 2, 0, count, 0, 2, 0);
        UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
            vstorev(sum[r][j], 2 * (row + r) + j, keep);
      }
      for (; row < rows; ++row) {
        floatv sum[1][2] = {{vloadv(2 * row, keep), vloadv(2 * row + 1, keep)}};
        add_row(sum, block_a + row * BLOCK_K, BLOCK_K, 1, panel_b, 2, 0, count, 0, 2, 0);
        UNROLL for (int j = 0; j < 2; ++j) vstorev(sum[0][j], 2 * row + j, keep);
      }
    }
  }
  const bool adds = !over_rows || !is_held ? (args.features & GROUPED_ADDEND) != 0u : false;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += VECTOR_WIDTH) {
      floatv y = vloadv(0, kept + column / PANEL * PANEL * BLOCK_M + row * PANEL + column % PANEL);
      const int count = columns - column;
      const size_t to_row = row0 + row, to_column = column0 + column;
      if (adds)
        y += load_typed_part(addend,
                             args.addend.offset + (size_t)group * args.addend.group + to_row * args.addend.row +
                                 to_column * args.addend.column,
                             args.addend.column, count, args.addend_type);
      store_typed_part(y, result,
                       args.result.offset + (size_t)group * args.result.group + to_row * args.result.row +
                           to_column * args.result.column,
                       args.result.column, count, args.result_type);
    }
  }
}
