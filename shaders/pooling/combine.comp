// SPDX-License-Identifier: Apache-2.0
// What     y[row] = sum over the splits of their partial sums / the sum of their counts; 0 if that
//          is 0.
// Who      An item owns one column of a row.
// Memory   The partial rows once, y once.
// Numerics Sums in float, splits in order; one rounding to DTYPE.
// Assumes  forward.comp has filled scratch; its assumptions.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/pooling_core/args.h"
#include "operations/pooling_core/lanes.def"
#include "operations/pooling_core/pool.def"

layout(std430, binding = 0) writeonly buffer Rows { scalar y[]; };
layout(std430, binding = 0) writeonly buffer RowVectors { scalar4 y4[]; };
layout(std430, binding = 1) readonly buffer Scratch { int scratch[]; };
layout(std430, binding = 1) readonly buffer ScratchVectors { vec4 scratch4[]; };
PUSH_ARGS(MeanPoolingArgs);
#include "pooling/vectors.glsl"
STORE_COLUMN(store_y, y, y4)

void main() {
  const uint index = gl_GlobalInvocationID.x, pools = args.batch * args.rows;
  const Column column = column_at(index);
  if (column.left == 0u) return;
  for (uint at = gl_WorkGroupID.y; at < pools; at += gl_NumWorkGroups.y) {
    vec4 sum = vec4(0.0);
    uint count = 0u;
    for (uint split = 0u; split < SPLITS; ++split) {
      const uint partial = split * pools + at;
      sum += scratch4[args.partial_sums + partial * count_columns() + index];
      count += uint(scratch[args.partial_counts + partial]);
    }
    const uint to =
        column.y + at / args.rows * args.y_stride_batch + at % args.rows * args.y_stride_row;
    store_y(sum * (count == 0u ? 0.0 : 1.0 / float(count)), to, column.left);
  }
}
