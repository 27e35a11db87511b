// SPDX-License-Identifier: Apache-2.0
// What     y[row] = sum over the tokens of the row that count of x[token] / how many count; 0 if
//          none does.
// Who      A work-group is one item. It owns BLOCK features of one head of a row.
// Memory   x once, y once; the sums stay in the first cache.
// Numerics Sums in float, tokens in order; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30; BLOCK is a multiple of 16.
#include "pooling/cpu.clh"

KERNEL void mean_forward_cpu(const global scalar* restrict x, const global int* restrict lengths,
                             const global uchar* restrict mask,
                             const global int* restrict cu_seqlens, global scalar* restrict y,
                             const global int* restrict scratch, const struct MeanPoolingArgs a) {
  const Block block = block_at(&a, get_group_id(0));
  const uint pools = a.batch * a.rows;
  lengths += a.index_offset;
  cu_seqlens += a.index_offset;
  float sums[BLOCK];
  scalar result[BLOCK];
  for (uint at = get_group_id(1); at < pools; at += get_num_groups(1)) {
    const size_t batch = at / a.rows, row = at % a.rows;
    const Pool pool = pool_of_row(lengths, cu_seqlens, scratch, &a, batch, row);
    for (uint i = 0; i < BLOCK; i += 16) vstore16((float16)(0.0f), 0, sums + i);
    uint count = 0;
    for (uint token = pool.begin; token < pool.end; ++token) {
      if (!is_counted(mask, &a, batch, token)) continue;
      ++count;
      const global scalar* from =
          x + block.x + batch * a.x_stride_batch + (size_t)token * a.x_stride_token;
      uint i = 0;
      for (; i + 16 <= block.count; i += 16)
        vstore16(vload16(0, sums + i) + load16(from + i), 0, sums + i);
      for (; i < block.count; ++i) sums[i] += load_scalar(from, i);
    }
    scale_block(sums, reciprocal_of(count), result, block.count);
    store_block(result, y + block.y + batch * a.y_stride_batch + row * a.y_stride_row, block.count);
  }
}
