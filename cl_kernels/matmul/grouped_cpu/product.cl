// SPDX-License-Identifier: Apache-2.0
// What     Products of groups of rows with a matrix each, of groups of terms, or of blocks of terms that a table places.
// Who      A work-group is one item and owns up to BLOCK_M rows by `panels` panels of an item of the work list.
// Memory   Blocks of a and panels of b as floats in private memory, which the second cache holds; sums in registers,
//          between blocks of terms in private memory. Nothing of other groups is read.
// Numerics Float, terms in order, of 8 bits by blocks; whole numbers exact; one rounding.
// Assumes  Operands below 2^31 elements; the work list is there.
#include "lib/cpu/products.clh"
#include "matmul/grouped_cpu/copies.clh"
#include "operations/grouped_core/args.h"
#include "operations/matmul_core/core/args.h"

#define PANEL (2 * VECTOR_WIDTH)
#define PANELS 8  // of an item, at most
// Rows of the tiles behind whole ones: enough sums to hide how long one takes.
#define FEW_ROWS (ROWS % 4 == 0 ? 4 : ROWS % 2 == 0 ? 2 : 1)
// Terms that are added up before the sums wait for the others.
#if BLOCKS == MATMUL_BLOCKS_SCALED
#define STEP MATMUL_BLOCK
#else
#define STEP BLOCK_K
#endif

INLINE floatv grouped_add(floatv x, floatv y, floatv sum) { return fma(x, y, sum); }
#define NEXT_LINE(from, lines, i) PREFETCH_FAR(line_at(lines, i))
#define COPY_ROW(from, copy, i) copy_row(copy, i)
PANEL_ADD_PRODUCTS(add_tile, const float*, struct Lines, ROWS, 2, grouped_add, NEXT_LINE)
PANEL_ADD_PRODUCTS(add_few, const float*, struct Lines, FEW_ROWS, 2, grouped_add, NEXT_LINE)
PANEL_ADD_PRODUCTS(copy_and_add_tile, const float*, struct PanelCopy, ROWS, 2, grouped_add, COPY_ROW)
PANEL_ADD_PRODUCTS(copy_and_add_few, const float*, struct PanelCopy, FEW_ROWS, 2, grouped_add, COPY_ROW)

// Of a vector of columns of one row: sums, or those of block `block` of the terms, times their scales.
INLINE floatv grouped_scaled(const struct GroupedArgs* args, const global float* scale_a, const global float* scale_b,
                             uint group, uint row, uint column, int count, uint block, floatv sum) {
  if (count <= 0) return sum;
  if ((args->features & GROUPED_SCALE_A) != 0u) {
    const uint at = (args->features & GROUPED_SCALE_ROWS) != 0u ? row / MATMUL_BLOCK : row;
    sum *= scale_a[args->scale_a.offset + (size_t)at * args->scale_a.row + (size_t)block * args->scale_a.term];
  }
  if ((args->features & GROUPED_SCALE_B) != 0u) {
    const bool shared = (args->features & GROUPED_SCALE_COLUMNS) != 0u;  // by whole vectors
    const size_t at = args->scale_b.offset + (size_t)group * args->scale_b.group + (size_t)block * args->scale_b.term +
                      (size_t)(shared ? column / MATMUL_BLOCK : column) * args->scale_b.column;
    sum *= load_typed_part(scale_b, at, shared ? 0u : args->scale_b.column, count, DTYPE_F32);
  }
  return sum;
}

// The sums of a step join those before. Of no terms there is no scale, and rows of no group may have any.
#if BLOCKS == MATMUL_BLOCKS_SCALED
#define JOINED(sum, before, row, j)                                                                                   \
  (count == 0 ? (before)                                                                                              \
              : (before) + grouped_scaled(&args, scale_a, scale_b, group, row0 + min(row, rows - 1),                  \
                                          column0 + column + (j) * VECTOR_WIDTH,                                      \
                                          columns - column - (j) * VECTOR_WIDTH, term / MATMUL_BLOCK, sum))
#elif BLOCKS == MATMUL_BLOCKS_WHOLE
#define JOINED(sum, before, row, j) as_floatv(as_intv(before) + JOIN(convert_int, VECTOR_WIDTH)(sum))
#else
#define JOINED(sum, before, row, j) (sum)
#endif

// Tiles of rows from `row` on.
#define TAKE_ROWS(ADD, TILE_ROWS)                                                                                     \
  for (; row + TILE_ROWS <= padded; row += TILE_ROWS) {                                                               \
    floatv sum[TILE_ROWS][2];                                                                                         \
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)                                     \
      sum[r][j] = fresh || BLOCKS != MATMUL_BLOCKS_NONE ? (floatv)(0.0f) : keep[2 * (row + r) + j];                   \
    if (row == 0 && copies) {                                                                                         \
      copy_and_##ADD(sum, block_a, BLOCK_K, 1, panel_b, 2, 0, count, 0, 2, copy);                                     \
    } else {                                                                                                          \
      struct Lines* next = next_b.first < next_b.end ? &next_b : &next_a;                                             \
      ADD(sum, block_a + row * BLOCK_K, BLOCK_K, 1, panel_b, 2, 0, count, 0, 2, *next);                               \
      next->first += count;                                                                                           \
      if (next->first >= next->end) *next = no_lines(a);                                                              \
    }                                                                                                                 \
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)                                     \
      keep[2 * (row + r) + j] =                                                                                       \
          JOINED(sum[r][j], fresh ? (floatv)(0.0f) : keep[2 * (row + r) + j], row + r, j);                            \
  }

KERNEL void grouped_product_cpu(const global void* restrict a, const global void* restrict b,
                                const global uint4* restrict list, const global void* restrict addend,
                                global void* restrict result, const global float* restrict scale_a,
                                const global float* restrict scale_b, const struct GroupedArgs args) {
  const bool over_terms = RAGGED == GROUPED_TERMS, over_rows = RAGGED == GROUPED_ROWS;
  const uint items = list[0].s0, blocks_each = over_rows ? 1 : (args.m + BLOCK_M - 1) / BLOCK_M;
  const uint panels = (args.n + PANEL - 1) / PANEL, blocks_n = (panels + args.panels - 1) / args.panels;
  // Blocks of rows one after the other, so that a group's panels stay in the second cache. Units without a block, where
  // groups end sooner than they might, lie between the others: threads take runs of units.
  const uint unit = get_group_id(0), each = get_num_groups(0) / blocks_n, block = unit % each;
  if (block >= items * blocks_each) return;
  const uint4 entry = list[1 + block / blocks_each];
  const uint group = entry.s0, from = entry.s1;
  const bool is_held = entry.s3 != 0;
  const uint row0 = over_rows ? from : block % blocks_each * BLOCK_M;
  const int rows = (int)min((over_rows ? entry.s2 : args.m) - row0, (uint)BLOCK_M);
  const uint terms = over_terms ? entry.s2 - from : is_held ? args.k : 0;
  const uint column0 = unit / each * args.panels * PANEL;
  const int columns = (int)min(args.n - column0, args.panels * PANEL);
  const size_t a_at = args.a.offset + (size_t)group * args.a.group + (size_t)row0 * args.a.row +
                      (over_terms ? (size_t)from * args.a.column : 0);
  const size_t b_at = args.b.offset + (size_t)group * args.b.group + (size_t)column0 * args.b.column +
                      (over_terms ? (size_t)from * args.b.row : 0);
  const int padded = (rows + FEW_ROWS - 1) / FEW_ROWS * FEW_ROWS;
  floatv kept[PANELS * BLOCK_M * 2];
  float block_a[BLOCK_M * BLOCK_K] __attribute__((aligned(64)));
  floatv panel_b[2 * BLOCK_K];
  for (int row = rows; row < padded; ++row)
    for (int i = 0; i < BLOCK_K; i += VECTOR_WIDTH) *(floatv*)(block_a + row * BLOCK_K + i) = (floatv)(0.0f);
  // Parts of terms: of those that blocks have, one block after the other. No terms are a part, too: the sums are 0.
  const uint parts_each = max((terms + STEP - 1) / STEP, 1u);
  const uint parts = RAGGED == GROUPED_BLOCKS ? parts_each * (entry.s2 - from) : parts_each;
  for (uint part = 0; part < max(parts, 1u); ++part) {
    const uint term = part % parts_each * STEP;
    const int count = parts == 0 ? 0 : (int)min(terms - term, (uint)STEP);
    const bool fresh = part == 0;
    size_t a_from = a_at, b_from = b_at;
    if (RAGGED == GROUPED_BLOCKS && parts != 0) {
      const global uint* entries = (const global uint*)list + args.table + 2 * (from + part / parts_each);
      a_from += entries[0];
      b_from += entries[1];
    }
    grouped_gather(a, a_from + (size_t)term * args.a.column, args.a.row, args.a.column, rows, count, A_TYPE, block_a,
                   BLOCK_K);
    // The block of the next part, or the first of the rows below. Where a table places blocks nothing is asked for.
    const bool goes_on = part + 1 < parts;
    const uint next_row = goes_on ? 0 : rows, next_term = goes_on ? (part + 1) % parts_each * STEP : 0;
    const int next_rows = (int)min(args.m - row0 - next_row, goes_on ? (uint)rows : (uint)BLOCK_M);
    const int next_count = RAGGED == GROUPED_BLOCKS ? 0 : (int)min(terms - next_term, (uint)STEP);
    struct Lines next_a = lines_of(a, a_at + (size_t)next_row * args.a.row + (size_t)next_term * args.a.column,
                                   args.a.row, args.a.column, next_rows, next_count, A_TYPE);
    for (int column = 0; column < columns; column += PANEL) {
      const int width = min(columns - column, PANEL);
      const struct PanelCopy copy = {
          b, b_from + (size_t)term * args.b.row + (size_t)column * args.b.column, args.b.row, panel_b};
      const bool copies = width == PANEL && args.b.column == 1;
      // The next panel, or the first of the next part, where it is no copy by rows.
      const bool is_last = column + PANEL >= columns;
      const uint later_term = is_last ? next_term : term, later_column = is_last ? 0 : column + PANEL;
      struct Lines next_b = no_lines(b);
      if (args.b.column != 1)
        next_b = lines_of(b, b_from + (size_t)later_term * args.b.row + (size_t)later_column * args.b.column,
                          args.b.row, args.b.column, is_last ? next_count : count,
                          min(columns - (int)later_column, PANEL), B_TYPE);
      if (width <= VECTOR_WIDTH)
        for (int i = 0; i < count; ++i) panel_b[2 * i + 1] = (floatv)(0.0f);
      if (!copies)
        grouped_gather(b, copy.at, args.b.row, args.b.column, count, width, B_TYPE, (float*)panel_b, PANEL);
      floatv* keep = kept + column / PANEL * BLOCK_M * 2;
      int row = 0;
      TAKE_ROWS(add_tile, ROWS)
      TAKE_ROWS(add_few, FEW_ROWS)
    }
  }
  const bool adds = !over_rows || !is_held ? (args.features & GROUPED_ADDEND) != 0u : false;
  const bool as_words = BLOCKS == MATMUL_BLOCKS_WHOLE && (args.features & GROUPED_WHOLE) != 0u;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; column += VECTOR_WIDTH) {
      floatv y = kept[column / PANEL * BLOCK_M * 2 + row * 2 + column % PANEL / VECTOR_WIDTH];
      const int count = columns - column;
      const size_t to_row = row0 + row, to_column = column0 + column;
      if (BLOCKS == MATMUL_BLOCKS_WHOLE) y = as_words ? y : JOIN(convert_float, VECTOR_WIDTH)(as_intv(y));
      if (BLOCKS != MATMUL_BLOCKS_SCALED && terms != 0)
        if (A_TYPE >= DTYPE_I8) y = grouped_scaled(&args, scale_a, scale_b, group, to_row, to_column, count, 0, y);
      if (adds) {
        const floatv added = load_typed_part(addend,
                                             args.addend.offset + (size_t)group * args.addend.group +
                                                 to_row * args.addend.row + to_column * args.addend.column,
                                             args.addend.column, count, args.addend_type);
        // Of rows of no group words are those of added. Compilers would fold a choice of it into the sum of floats,
        // where words that are NaN as floats lose a bit.
        y = as_words ? as_floatv(as_intv(y) + as_intv(added)) : y + added;
      }
      store_typed_part(y, result,
                       args.result.offset + (size_t)group * args.result.group + to_row * args.result.row +
                           to_column * args.result.column,
                       args.result.column, count, args.result_type);
    }
  }
}
