// SPDX-License-Identifier: Apache-2.0
// What     y[row] = sum over the tokens of the row that count of x[token] / how many count; 0 if
//          none does.
// Who      mean_forward: a work-group owns WG_X columns of four features of a row, or a SPLITS-th
//          of its tokens; item (column, lane) owns every WG_Y-th token. mean_combine: an item owns
//          one column of a row.
// Memory   x once, y once; with SPLITS > 1 as many partial rows written and read.
// Numerics Sums in float: each lane in order, then lanes, then splits; one rounding to DTYPE.
// Assumes  Contiguous features, tokens and rows below 2^30, operands below 2^31 elements, ALIGNED
//          is true where it is 1.
#include "pooling/vectors.clh"

KERNEL void mean_forward(const global scalar* restrict x, const global int* restrict lengths,
                         const global uchar* restrict mask, const global int* restrict cu_seqlens,
                         global scalar* restrict y, global int* restrict scratch,
                         const struct MeanPoolingArgs a) {
  local float4 sums[WG_Y * WG_X];
  local uint counts[WG_Y];
  const uint item = get_local_id(0), lane = get_local_id(1), split = get_group_id(2);
  const uint index = (uint)get_group_id(0) * WG_X + item, columns = a.heads * ((a.dim + 3) / 4);
  const uint pools = a.batch * a.rows;
  const Column column = column_at(&a, index);
  lengths += a.index_offset;
  cu_seqlens += a.index_offset;

  for (uint at = get_group_id(1); UNIFORM(at < pools); at += get_num_groups(1)) {
    const uint batch = at / a.rows, row = at % a.rows;
    const Pool pool = pool_of_row(lengths, cu_seqlens, scratch, &a, batch, row);
    const uint share = (pool.end - pool.begin + SPLITS - 1) / SPLITS;
    const uint begin = min(pool.begin + split * share, pool.end),
               end = min(begin + share, pool.end);

    float4 sum = (float4)(0.0f);
    uint count = 0;
    if (column.left > 0) {
      const global scalar* from = x + column.x + (size_t)batch * a.x_stride_batch;
      for (uint first = begin + lane; first < end; first += TOKENS * WG_Y) {
        float4 part[TOKENS];
        UNROLL for (uint n = 0; n < TOKENS; ++n) {
          const uint token = first + n * WG_Y;
          part[n] = (float4)(0.0f);
          if (token < end && is_counted(mask, &a, batch, token)) {
            part[n] = load_column(from, (size_t)token * a.x_stride_token, column.left);
            ++count;
          }
        }
        UNROLL for (uint n = 0; n < TOKENS; ++n) sum += part[n];
      }
    }
    if (WG_Y > 1) {
      sums[lane * WG_X + item] = sum;
      if (item == 0) counts[lane] = count;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane == 0) {
        count = counts[0];
        for (uint other = 1; other < WG_Y; ++other) {
          sum += sums[other * WG_X + item];
          count += counts[other];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && column.left > 0) {
      if (SPLITS > 1) {
        const size_t partial = (size_t)split * pools + at;
        ((global float4*)scratch)[a.partial_sums + partial * columns + index] = sum;
        if (index == 0) scratch[a.partial_counts + partial] = (int)count;
      } else {
        store_column(sum * reciprocal_of(count), y,
                     column.y + (size_t)batch * a.y_stride_batch + (size_t)row * a.y_stride_row,
                     column.left);
      }
    }
  }
}

KERNEL void mean_combine(global scalar* restrict y, const global int* restrict scratch,
                         const struct MeanPoolingArgs a) {
  const uint index = get_global_id(0), columns = a.heads * ((a.dim + 3) / 4),
             pools = a.batch * a.rows;
  const Column column = column_at(&a, index);
  if (column.left == 0) return;
  for (uint at = get_group_id(1); at < pools; at += get_num_groups(1)) {
    float4 sum = (float4)(0.0f);
    uint count = 0;
    for (uint split = 0; split < SPLITS; ++split) {
      const size_t partial = (size_t)split * pools + at;
      sum += ((const global float4*)scratch)[a.partial_sums + partial * columns + index];
      count += (uint)scratch[a.partial_counts + partial];
    }
    const size_t batch = at / a.rows, row = at % a.rows;
    store_column(sum * reciprocal_of(count), y,
                 column.y + batch * a.y_stride_batch + row * a.y_stride_row, column.left);
  }
}
