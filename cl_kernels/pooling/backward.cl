// SPDX-License-Identifier: Apache-2.0
// What     x[token] = y[row of the token] / how many tokens of that row count; 0 for a token that
//          counts nowhere.
// Who      A work-group owns WG_X columns of four features of WG_Y * TOKENS tokens, an item TOKENS
//          consecutive tokens.
// Memory   x once; y once for each TOKENS tokens, mostly from caches.
// Numerics y times a reciprocal in float; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30, operands below 2^31 elements, ALIGNED
//          is true where it is 1.
#include "pooling/vectors.clh"

KERNEL void mean_backward(const global scalar* restrict y, const global int* restrict lengths,
                          const global uchar* restrict mask, const global int* restrict cu_seqlens,
                          global scalar* restrict x, const global int* restrict scratch,
                          const struct MeanPoolingArgs a) {
  const uint batch_blocks = (a.tokens + WG_Y * TOKENS - 1) / (WG_Y * TOKENS),
             blocks = a.batch * batch_blocks;
  const Column column = column_at(&a, get_global_id(0));
  if (column.left == 0) return;
  lengths += a.index_offset;
  cu_seqlens += a.index_offset;

  for (uint block = get_group_id(1); block < blocks; block += get_num_groups(1)) {
    const uint batch = block / batch_blocks;
    const uint first = (block % batch_blocks * WG_Y + (uint)get_local_id(1)) * TOKENS;
    const uint end = min(first + TOKENS, a.tokens);
    global scalar* to = x + column.x + (size_t)batch * a.x_stride_batch;
    uint pool_end = 0;
    float4 gradient = (float4)(0.0f);
    for (uint token = first; token < end; ++token) {
      if (token >= pool_end) {
        const Pool pool = pool_of_token(lengths, cu_seqlens, scratch, &a, batch, token);
        pool_end = pool.end;
        gradient = (float4)(0.0f);
        if (pool.row != NO_ROW) {
          const uint count = MASKED ? (uint)scratch[batch] : pool.end - pool.begin;
          const size_t row =
              column.y + (size_t)batch * a.y_stride_batch + (size_t)pool.row * a.y_stride_row;
          gradient = load_column(y, row, column.left) * reciprocal_of(count);
        }
      }
      store_column(is_counted(mask, &a, batch, token) ? gradient : (float4)(0.0f), to,
                   (size_t)token * a.x_stride_token, column.left);
    }
  }
}
