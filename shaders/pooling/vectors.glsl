// SPDX-License-Identifier: Apache-2.0
// Columns of four features, and the tails of heads that are no multiple of four.
#ifndef TESSERA_POOLING_VECTORS_GLSL
#define TESSERA_POOLING_VECTORS_GLSL
#include "lib/columns.glsl"

// Where a column starts within a token of x and a row of y; `left` is how many features of its head
// are there, 0 = there is no such column.
struct Column {
  uint x, y, left;
};

uint count_columns() { return args.heads * ((args.dim + 3u) / 4u); }

Column column_at(uint column) {
  const uint head_columns = (args.dim + 3u) / 4u, head = column / head_columns,
             feature = column % head_columns * 4u;
  return Column(args.x_offset + head * args.x_stride_head + feature,
                args.y_offset + head * args.y_stride_head + feature,
                head < args.heads ? args.dim - feature : 0u);
}

#endif  // TESSERA_POOLING_VECTORS_GLSL
