// SPDX-License-Identifier: Apache-2.0
// What     x[token] = y[row of the token] / how many tokens of that row count; 0 for a token that
//          counts nowhere.
// Who      A work-group is one item. It owns BLOCK features of a head of TOKENS consecutive tokens.
// Memory   x once; y once for each TOKENS tokens.
// Numerics y times a reciprocal in float; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30; BLOCK is a multiple of 16.
#include "pooling/cpu.clh"

KERNEL void mean_backward_cpu(const global scalar* restrict y, const global int* restrict lengths,
                              const global uchar* restrict mask,
                              const global int* restrict cu_seqlens, global scalar* restrict x,
                              const global int* restrict scratch, const struct MeanPoolingArgs a) {
  const Block block = block_at(&a, get_group_id(0));
  const uint batch_shares = (a.tokens + TOKENS - 1) / TOKENS, shares = a.batch * batch_shares;
  lengths += a.index_offset;
  cu_seqlens += a.index_offset;
  float values[BLOCK];
  scalar gradient[BLOCK], zero[BLOCK];
  for (uint i = 0; i < BLOCK; ++i) {
    values[i] = 0.0f;
    zero[i] = 0;
  }
  for (uint share = get_group_id(1); share < shares; share += get_num_groups(1)) {
    const size_t batch = share / batch_shares;
    const uint first = share % batch_shares * TOKENS, end = min(first + TOKENS, a.tokens);
    Pool pool = {NO_ROW, 0, 0};
    for (uint token = first; token < end; ++token) {
      if (token >= pool.end) {
        pool = pool_of_token(lengths, cu_seqlens, scratch, &a, batch, token);
        if (pool.row != NO_ROW) {
          const uint count = MASKED ? (uint)scratch[batch] : pool.end - pool.begin;
          const global scalar* from =
              y + block.y + batch * a.y_stride_batch + (size_t)pool.row * a.y_stride_row;
          for (uint i = 0; i < block.count; ++i) values[i] = load_scalar(from, i);
          scale_block(values, reciprocal_of(count), gradient, block.count);
        }
      }
      const bool counted = pool.row != NO_ROW && is_counted(mask, &a, batch, token);
      store_block(counted ? gradient : zero,
                  x + block.x + batch * a.x_stride_batch + (size_t)token * a.x_stride_token,
                  block.count);
    }
  }
}
