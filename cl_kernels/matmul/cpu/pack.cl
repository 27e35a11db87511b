// SPDX-License-Identifier: Apache-2.0
// What     A matrix as floats: panels of `width` columns, [panel][row][width], zeros behind the last column.
// Who      A work-group is one item and owns PACK_ROWS rows of a panel.
// Memory   The matrix once, the panels once. What runs along columns in memory is turned in squares.
// Numerics Exact.
// Assumes  `width` is a multiple of the vector; scratch below 2^31 floats.
#include "lib/cpu/stored.clh"
#include "operations/matmul_core/cpu/pack_args.h"

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
  uint rest = matrix;
  size_t at = a.offset;
  at += (size_t)(rest % a.size4) * a.step4;
  rest /= a.size4;
  at += (size_t)(rest % a.size3) * a.step3;
  rest /= a.size3;
  at += (size_t)(rest % a.size2) * a.step2;
  rest /= a.size2;
  at += (size_t)(rest % a.size1) * a.step1 + (size_t)(rest / a.size1) * a.step0;
  at += (size_t)first * a.row + (size_t)panel * a.width * a.column;
  const size_t to = a.to + (((size_t)matrix * panels + panel) * a.rows + first) * a.width;
  pack_rows(from, at, a.row, a.column, (int)min(a.rows - first, (uint)PACK_ROWS),
            (int)(a.columns - panel * a.width), (int)a.width, scratch + to);
}
