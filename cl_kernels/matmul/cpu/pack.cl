// SPDX-License-Identifier: Apache-2.0
// What     A matrix as floats: panels of `width` columns, [panel][row][width], zeros behind the last column. With DOT, as words
//          of several factors.
// Who      A work-group is one item and owns PACK_ROWS rows of a panel, with DOT 16 lines or a panel.
// Memory   The matrix once, the panels once. What runs along columns in memory is turned in squares.
// Numerics Exact.
// Assumes  `width` is a multiple of the vector; scratch below 2^31 floats.
#include "lib/cpu/stored.clh"
#include "lib/cpu/words.clh"
#include "operations/matmul_core/cpu/pack_args.h"

// Where a matrix begins.
INLINE size_t source_of(const struct MatmulPackArgs* a, uint matrix) {
  uint rest = matrix;
  size_t at = a->offset;
  at += (size_t)(rest % a->size4) * a->step4;
  rest /= a->size4;
  at += (size_t)(rest % a->size3) * a->step3;
  rest /= a->size3;
  at += (size_t)(rest % a->size2) * a->step2;
  rest /= a->size2;
  return at + (size_t)(rest % a->size1) * a->step1 + (size_t)(rest / a->size1) * a->step0;
}

#if DOT != DOT_NONE
// Lines of a, one behind the other; or panels of 32 lines of b, as add_dots() takes them.
KERNEL void matmul_pack(const global void* restrict from, global float* restrict scratch,
                        const struct MatmulPackArgs a) {
  const bool panels = a.by_rows != 0;
  const int lines = (int)(panels ? a.columns : a.rows), terms = (int)(panels ? a.rows : a.columns);
  const size_t line_step = panels ? a.column : a.row, step = panels ? a.row : a.column;
  const int words = (terms + FACTORS - 1) / FACTORS, each = panels ? 32 : 16;
  const uint blocks = (uint)((lines + each - 1) / each), matrix = (uint)get_group_id(0) / blocks;
  const int line = (int)((uint)get_group_id(0) % blocks) * each;
  const global factor* p = (const global factor*)from + source_of(&a, matrix) + (size_t)line * line_step;
  if (!panels) {
    global float* to = scratch + a.to + ((size_t)matrix * lines + line) * a.width;
    for (int word = 0; word < words; word += 16) {
      floatv x[16];
      load_words(p + (size_t)(FACTORS * word) * step, line_step, step, lines - line, terms - FACTORS * word, false, x);
      UNROLL for (int i = 0; i < 16; ++i)
        if (i < lines - line) vstorev(x[i], 0, to + (size_t)i * a.width + word);
    }
    return;
  }
  global float* to = scratch + a.to + ((size_t)matrix * blocks + line / 32) * 32 * words;
  for (int word = 0; word < words; word += 16) {
    const global factor* from_word = p + (size_t)(FACTORS * word) * step;
    UNROLL for (int side = 0; side < 2; ++side) {
      const int there = lines - line - 16 * side;
      floatv x[16];
      load_words(from_word + (size_t)(16 * side) * line_step, line_step, step, there, terms - FACTORS * word, true, x);
      UNROLL for (int i = 0; i < 16; ++i)
        if (word + i < words) vstorev(unsigned_words(x[i]), 0, to + (size_t)(word + i) * 32 + 16 * side);
    }
  }
}
#else
// Rows first to first + rows - 1, columns [begin, begin + width) of which `columns` are there.
INLINE void pack_rows(const global void* from, size_t at, uint row_step, uint column_step, int rows, int columns,
                      int width, global float* to) {
  if (column_step != 1 && row_step == 1) {
    int r = 0;
    for (; r + VECTOR_WIDTH <= rows; r += VECTOR_WIDTH) {
      for (int c = 0; c < width; c += VECTOR_WIDTH) {
        floatv x[VECTOR_WIDTH];
        UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i)
          x[i] = c + i < columns ? load_stored_whole(from, at + (size_t)(c + i) * column_step + r, FROM_TYPE)
                                 : (floatv)(0.0f);
        transpose(x);
        UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) vstorev(x[i], 0, to + (size_t)(r + i) * width + c);
      }
    }
    at += r;
    to += (size_t)r * width;
    rows -= r;
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; c += VECTOR_WIDTH)
      vstorev(load_stored_part(from, at + (size_t)r * row_step + (size_t)c * column_step, column_step, columns - c,
                              FROM_TYPE),
              0, to + (size_t)r * width + c);
}

KERNEL void matmul_pack(const global void* restrict from, global float* restrict scratch,
                        const struct MatmulPackArgs a) {
  uint unit = get_group_id(0);
  const uint blocks = (a.rows + PACK_ROWS - 1) / PACK_ROWS, panels = (a.columns + a.width - 1) / a.width;
  const uint first = unit % blocks * PACK_ROWS, panel = unit / blocks % panels, matrix = unit / blocks / panels;
  const size_t at = source_of(&a, matrix) + (size_t)first * a.row + (size_t)panel * a.width * a.column;
  const size_t to = a.to + (((size_t)matrix * panels + panel) * a.rows + first) * a.width;
  pack_rows(from, at, a.row, a.column, (int)min(a.rows - first, (uint)PACK_ROWS),
            (int)(a.columns - panel * a.width), (int)a.width, scratch + to);
}
#endif
