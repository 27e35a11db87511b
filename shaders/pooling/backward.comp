// SPDX-License-Identifier: Apache-2.0
// What     x[token] = y[row of the token] / how many tokens of that row count; 0 for a token that
//          counts nowhere.
// Who      A work-group owns WG_X columns of four features of WG_Y * TOKENS tokens, an item TOKENS
//          consecutive tokens.
// Memory   x once; y once for each TOKENS tokens, mostly from caches.
// Numerics y times a reciprocal in float; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30, operands below 2^31 elements, ALIGNED
//          is true where it is 1.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/pooling_core/args.h"
#include "operations/pooling_core/pool.def"
#include "operations/pooling_core/spread.def"

layout(std430, binding = 0) readonly buffer Rows { scalar y[]; };
layout(std430, binding = 0) readonly buffer RowVectors { scalar4 y4[]; };
layout(std430, binding = 1) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 2) readonly buffer Mask { uint mask_words[]; };
layout(std430, binding = 3) readonly buffer Boundaries { int cu_seqlens[]; };
layout(std430, binding = 4) writeonly buffer Tokens { scalar x[]; };
layout(std430, binding = 4) writeonly buffer TokenVectors { scalar4 x4[]; };
layout(std430, binding = 5) readonly buffer Scratch { int scratch[]; };
PUSH_ARGS(MeanPoolingArgs);
#define POOLS_OF_TOKENS
#include "pooling/pools.glsl"
#include "pooling/vectors.glsl"
LOAD_COLUMN(load_y, y, y4)
STORE_COLUMN(store_x, x, x4)

void main() {
  const uint batch_blocks = (args.tokens + WG_Y * TOKENS - 1u) / (WG_Y * TOKENS),
             blocks = args.batch * batch_blocks;
  const Column column = column_at(gl_GlobalInvocationID.x);
  if (column.left == 0u) return;

  for (uint block = gl_WorkGroupID.y; block < blocks; block += gl_NumWorkGroups.y) {
    const uint batch = block / batch_blocks;
    const uint first = (block % batch_blocks * WG_Y + gl_LocalInvocationID.y) * TOKENS;
    const uint end = min(first + TOKENS, args.tokens);
    const uint to = column.x + batch * args.x_stride_batch;
    uint pool_end = 0u;
    vec4 gradient = vec4(0.0);
    for (uint token = first; token < end; ++token) {
      if (token >= pool_end) {
        const Pool pool = pool_of_token(batch, token);
        pool_end = pool.end;
        gradient = vec4(0.0);
        if (pool.row != NO_ROW) {
          const uint count = MASKED != 0 ? uint(scratch[batch]) : pool.end - pool.begin;
          const uint row = column.y + batch * args.y_stride_batch + pool.row * args.y_stride_row;
          gradient = load_y(row, column.left) * reciprocal_of(count);
        }
      }
      store_x(is_counted(batch, token) ? gradient : vec4(0.0), to + token * args.x_stride_token,
              column.left);
    }
  }
}
