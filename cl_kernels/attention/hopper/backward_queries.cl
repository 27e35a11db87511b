// SPDX-License-Identifier: Apache-2.0
// What     dq = scale * the sums that attention/hopper/backward left in scratch; 0 for rows that see
//          no key. Rows whose sums are not finite are computed again, by core/exact_gradients, from
//          the keys that they see alone.
// Who      Group (x, y, z): BLOCK_Q query rows, head, batch; an item has two rows x 16 columns.
// Memory   Scratch and dq once.
// Numerics One rounding to the storage type.
// Assumes  Offsets and strides of dq are multiples of 8 elements.
//
// The sums lie as warpgroups hold them: [half][8 rows][128 items][4], where item t has column
// t / 32 * 16 + t % 32 / 4 of rows 2 (t % 4) + {0, 1}, then the column 8 further on. With 128 columns
// a half has 64 columns of all rows, with 64 columns half the rows.
#include "lib/prelude.clh"
#include "operations/attention_core/hopper/backward_args.h"
#include "operations/attention_core/hopper/backward.h"

#define EXACT_HEADS (DIM / 32)
#define EXACT_COLUMNS (DIM / 32)
#include "attention/core/exact_gradients.clh"

#define HALF_ROWS (DIM == 128 ? BLOCK_Q : BLOCK_Q / 2)
// Items of a tile: 4 pairs of rows x rows / 8 x 4 pieces of 16 columns x halves.
#define PIECES (BLOCK_Q * DIM / 32)

INLINE void store_columns(global scalar* row, int column, int columns, const float* x) {
  for (int i = 0; i < 16; i += 4) {
    if (column + i + 3 < columns) {
      store_scalar4((float4)(x[i], x[i + 1], x[i + 2], x[i + 3]), row, column + i);
    } else {
      for (int j = i; j < i + 4; ++j)
        if (column + j < columns) store_scalar(x[j], row, column + j);
    }
  }
}

KERNEL void attention_hopper_backward_queries(const global scalar* restrict q,
                                              const global scalar* restrict k,
                                              const global scalar* restrict v,
                                              const global scalar* restrict output_gradient,
                                              const global float* restrict log_sum_exp,
                                              const global float* restrict scratch,
                                              global scalar* restrict dq,
                                              const struct HopperBackwardCall a) {
  const uint tile = get_group_id(0), head = get_group_id(1), batch = get_group_id(2);
  const uint number = (batch * a.core.heads + head) * get_num_groups(0) + tile;
  const global float* sums = scratch + a.dq + (size_t)number * ATTN_DQ_FLOATS;
  dq += a.gradient.dq_offset + (size_t)batch * a.gradient.dq_stride_batch +
        (size_t)head * a.gradient.dq_stride_head;
  local uint odd[BLOCK_Q / 32];  // a bit for each row
  if (get_local_id(0) < BLOCK_Q / 32) odd[get_local_id(0)] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint piece = get_local_id(0); piece < PIECES; piece += WG_X) {
    const uint pair = piece % 4, rows8 = piece / 4 % (HALF_ROWS / 8);
    const uint warp = piece / (HALF_ROWS / 2) % 4, half_tile = piece / (HALF_ROWS * 2);
    const uint row = tile * BLOCK_Q + (DIM == 128 ? 0 : half_tile * HALF_ROWS) + rows8 * 8 + pair * 2;
    const int column = (DIM == 128 ? half_tile * 64 : 0) + warp * 16;
    const global float4* from =
        (const global float4*)(sums + half_tile * (ATTN_DQ_FLOATS / 2)) + rows8 * 128 + warp * 32 + pair;
    float x[16], y[16];
    UNROLL for (int i = 0; i < 8; ++i) {
      const float4 sum = from[i * 4] * a.core.scale;
      x[i] = sum.s0, y[i] = sum.s1, x[i + 8] = sum.s2, y[i + 8] = sum.s3;
    }
    for (uint i = 0; i < 2; ++i) {
      const uint at = row + i;
      const bool seen = at - a.first_row < a.rows;
      float zero = 0.0f;
      UNROLL for (int j = 0; j < 16; ++j) {
        x[j] = !seen ? 0.0f : i == 0 ? x[j] : y[j];
        zero = fma(x[j], 0.0f, zero);
      }
      if (isnan(zero)) atomic_or(odd + (at - tile * BLOCK_Q) / 32, 1u << at % 32);
      if (at < a.core.q_len)
        store_columns(dq + (size_t)at * a.gradient.dq_stride_row, column, (int)a.head_dim, x);
    }
  }

  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const uint lane = get_local_id(0) % 32;
  ROLLED for (uint n = get_local_id(0) / 32; n < BLOCK_Q; n += WG_X / 32) {
    const int row = (int)(tile * BLOCK_Q + n);
    if ((odd[n / 32] >> n % 32 & 1) == 0 || row >= (int)a.core.q_len) continue;
    const ExactPairs exact = EXACT_PAIRS(a, scratch, batch, head, a.head_dim, a.value_dim);
    const int first = max(row + a.core.band_low, 0);
    const int end = min(row + a.core.band_high + 1, (int)a.core.kv_len);
    float sum[EXACT_HEADS];
    exact_query(sum, &exact, row, first, end, lane);
    exact_store(dq + (size_t)row * a.gradient.dq_stride_row, sum, EXACT_HEADS, a.head_dim,
                a.core.scale, lane);
  }
}
