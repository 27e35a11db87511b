// SPDX-License-Identifier: Apache-2.0
// What     y[row] = sum over the tokens of the row that count of x[token] / how many count; 0 if
//          none does.
// Who      A work-group owns WG_X columns of four features of a row, or a SPLITS-th of its tokens;
//          item (column, lane) owns every WG_Y-th token.
// Memory   x once, y once; with SPLITS > 1 a partial row for each split instead of y.
// Numerics Sums in float: each lane in order, then lanes in order; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30, operands and scratch below 2^31
//          elements, ALIGNED is true where it is 1.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/pooling_core/args.h"
#include "operations/pooling_core/lanes.def"
#include "operations/pooling_core/pool.def"

layout(std430, binding = 0) readonly buffer Tokens { scalar x[]; };
layout(std430, binding = 0) readonly buffer TokenVectors { scalar4 x4[]; };
layout(std430, binding = 1) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 2) readonly buffer Mask { uint mask_words[]; };
layout(std430, binding = 3) readonly buffer Boundaries { int cu_seqlens[]; };
layout(std430, binding = 4) writeonly buffer Rows { scalar y[]; };
layout(std430, binding = 4) writeonly buffer RowVectors { scalar4 y4[]; };
layout(std430, binding = 5) buffer Scratch { int scratch[]; };
layout(std430, binding = 5) writeonly buffer ScratchVectors { vec4 scratch4[]; };
PUSH_ARGS(MeanPoolingArgs);
#define POOLS_OF_ROWS
#include "pooling/pools.glsl"
#include "pooling/vectors.glsl"
LOAD_COLUMN(load_x, x, x4)
STORE_COLUMN(store_y, y, y4)

shared vec4 sums[WG_Y * WG_X];
shared uint counts[WG_Y];

void main() {
  const uint item = gl_LocalInvocationID.x, lane = gl_LocalInvocationID.y, split = gl_WorkGroupID.z;
  const uint index = gl_GlobalInvocationID.x, pools = args.batch * args.rows;
  const Column column = column_at(index);

  for (uint at = gl_WorkGroupID.y; at < pools; at += gl_NumWorkGroups.y) {
    const uint batch = at / args.rows, row = at % args.rows;
    const Pool pool = pool_of_row(batch, row);
    const uint share = (pool.end - pool.begin + SPLITS - 1u) / SPLITS;
    const uint begin = min(pool.begin + split * share, pool.end),
               end = min(begin + share, pool.end);

    vec4 sum = vec4(0.0);
    uint count = 0u;
    if (column.left > 0u) {
      const uint from = column.x + batch * args.x_stride_batch;
      for (uint first = begin + lane; first < end; first += TOKENS * WG_Y) {
        vec4 part[TOKENS];
        [[unroll]] for (uint n = 0u; n < TOKENS; ++n) {
          const uint token = first + n * WG_Y;
          part[n] = vec4(0.0);
          if (token < end && is_counted(batch, token)) {
            part[n] = load_x(from + token * args.x_stride_token, column.left);
            ++count;
          }
        }
        [[unroll]] for (uint n = 0u; n < TOKENS; ++n) sum += part[n];
      }
    }
    if (WG_Y > 1u) {
      sums[lane * WG_X + item] = sum;
      if (item == 0u) counts[lane] = count;
      barrier();
      if (lane == 0u) {
        count = counts[0];
        for (uint other = 1u; other < WG_Y; ++other) {
          sum += sums[other * WG_X + item];
          count += counts[other];
        }
      }
      barrier();
    }
    if (lane == 0u && column.left > 0u) {
      if (SPLITS > 1u) {
        const uint partial = split * pools + at;
        scratch4[args.partial_sums + partial * count_columns() + index] = sum;
        if (index == 0u) scratch[args.partial_counts + partial] = int(count);
      } else {
        store_y(sum * reciprocal_of(count),
                column.y + batch * args.y_stride_batch + row * args.y_stride_row, column.left);
      }
    }
  }
}
