// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first; head; batch. Items as drawn below.
// Memory   k and v once per query tile, q once (KEEP_Q) or with every BLOCK_K keys.
// Numerics Float; base-2 softmax with running maximum; keys in order; one rounding to DTYPE.
// Assumes  TILE_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie.
//
// One step takes BLOCK_K keys. LANES_Q x LANES_K items lie over both products in the same way, so
// the rows, with their maxima, sums and outputs, never leave their items; only the weights p cross
// lanes, through local memory, where the slices of q, k and v are staged too (as float).
//
//                 BLOCK_K keys                                 value columns
//           +----------------------+                      +----------------------+
//  BLOCK_Q  | scores, added up by  | mask, softmax,       | output, added up by  |
//  queries  | SLICE_D features     | p to local memory    | SLICE_K keys         |
//           +----------------------+                      +----------------------+
//  Item (lane_q, lane_k): rows lane_q + LANES_Q r, columns 4 (lane_k + LANES_K g) + 0..3 of both.
//
// Registers hold ITEM_ROWS x ITEM_KEYS scores and ITEM_ROWS x 4 ITEM_VALUES outputs, where
//   LANES_K = WG_X ITEM_ROWS / BLOCK_Q, ITEM_KEYS = BLOCK_K / LANES_K,
//   ITEM_VALUES = ceil(VALUE_DIM / (4 LANES_K)); TILE_REGISTERS estimates the whole.
// Local memory is TILE_LOCAL_BYTES = 16 (Q + max(K, P + V)) if KEEP_Q else 16 max(Q + K, P + V),
//   Q = BLOCK_Q odd(KEEP_Q ? SLICE_D / 4 ceil(HEAD_DIM / SLICE_D) : SLICE_D / 4),
//   K = BLOCK_K odd(SLICE_D / 4), P = BLOCK_Q odd(BLOCK_K / 4), V = SLICE_K LANES_K ITEM_VALUES,
//   odd(n) = n | 1.
// A value that is not finite reaches all rows of a group if one of them sees its key, else none.
#include "lib/prelude.clh"
#include "operations/flash_attention/args.h"
#include "operations/flash_attention/score.h"
#include "operations/flash_attention/tile.h"

// The rows of one (batch, head). Rows from `end` on are never read: memory may hold NaN there, and
// 0 * NaN would show.
typedef struct {
  const global scalar* data;
  uint stride;
  uint features;
  int end;
} Rows;

// Four features of a row; zero where there is none.
INLINE float4 load_features(Rows rows, int row, uint feature) {
  const global scalar* at = rows.data + (size_t)row * rows.stride;
  float4 x = (float4)(0.0f);
  if (row >= rows.end) return x;
  if (ALIGNED) {
    if (feature < rows.features) x = load_scalar4(at, feature);
  } else {
    if (feature + 0 < rows.features) x.s0 = load_scalar(at, feature + 0);
    if (feature + 1 < rows.features) x.s1 = load_scalar(at, feature + 1);
    if (feature + 2 < rows.features) x.s2 = load_scalar(at, feature + 2);
    if (feature + 3 < rows.features) x.s3 = load_scalar(at, feature + 3);
  }
  return x;
}

// fetch_x: this item's share of a slice, to registers. store_x: from there to the tile. The bounds
// of the loops stand in the text, not in a parameter: else compilers do not unroll them all, and
// keep `copies` in memory.
INLINE void fetch_queries(float4* copies, Rows queries, int first_row, uint slice, uint item) {
  UNROLL for (uint n = 0; n < Q_COPIES; ++n)
    copies[K_COPIES + n] =
        load_features(queries, first_row + (int)(item / SLICE_VECTORS + n * COPY_ROWS),
                      slice * SLICE_D + item % SLICE_VECTORS * 4);
}

INLINE void fetch_keys(float4* copies, Rows keys, int first, uint slice, uint item) {
  UNROLL for (uint n = 0; n < K_COPIES; ++n)
    copies[n] = load_features(keys, first + (int)(item / SLICE_VECTORS + n * COPY_ROWS),
                              slice * SLICE_D + item % SLICE_VECTORS * 4);
}

INLINE void fetch_values(float4* copies, Rows values, int first, uint slice, uint item) {
  UNROLL for (uint n = 0; n < V_COPIES; ++n)
    copies[n] = load_features(
        values, first + (int)(slice * SLICE_K + item / LANES_K + n / ITEM_VALUES * LANES_Q),
        (item % LANES_K + n % ITEM_VALUES * LANES_K) * 4);
}

INLINE void store_queries(local float4* tile, const float4* copies, uint slice, uint item) {
  UNROLL for (uint n = 0; n < Q_COPIES; ++n) {
    const uint row = item / SLICE_VECTORS + n * COPY_ROWS;
    if (row < BLOCK_Q)
      tile[row * Q_STRIDE + slice * SLICE_VECTORS + item % SLICE_VECTORS] = copies[K_COPIES + n];
  }
}

// Keys 4 i to 4 i + 3 are score columns of one item. They go to rows i, i + BLOCK_K / 4, ... of the
// tile: so the lanes, each of which reads one such row at a time, read neighbouring rows.
INLINE void store_keys(local float4* tile, const float4* copies, uint item) {
  UNROLL for (uint n = 0; n < K_COPIES; ++n) {
    const uint key = item / SLICE_VECTORS + n * COPY_ROWS;
    if (key < BLOCK_K)
      tile[(key % 4 * (BLOCK_K / 4) + key / 4) * K_STRIDE + item % SLICE_VECTORS] = copies[n];
  }
}

INLINE void store_values(local float4* tile, const float4* copies, uint item) {
  UNROLL for (uint n = 0; n < V_COPIES; ++n) {
    const uint key = item / LANES_K + n / ITEM_VALUES * LANES_Q;
    if (key < SLICE_K)
      tile[key * V_STRIDE + item % LANES_K + n % ITEM_VALUES * LANES_K] = copies[n];
  }
}

INLINE float dot_add(float4 a, float4 b, float sum) {
  return fma(a.s3, b.s3, fma(a.s2, b.s2, fma(a.s1, b.s1, fma(a.s0, b.s0, sum))));
}

// One slice of q k^T: 4 ITEM_ROWS ITEM_KEYS multiply-adds for ITEM_ROWS + ITEM_KEYS reads.
INLINE void add_scores(float* score, const local float4* query, const local float4* key) {
  for (uint d = 0; d < SLICE_VECTORS; ++d) {
    float4 key_part[ITEM_KEYS];
    UNROLL for (uint c = 0; c < ITEM_KEYS; ++c)
      key_part[c] = key[(c % 4 * (BLOCK_K / 4) + c / 4 * LANES_K) * K_STRIDE + d];
    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      const float4 query_part = query[LANES_Q * r * Q_STRIDE + d];
      UNROLL for (uint c = 0; c < ITEM_KEYS; ++c)
        score[r * ITEM_KEYS + c] = dot_add(query_part, key_part[c], score[r * ITEM_KEYS + c]);
    }
  }
}

// One slice of p v: 16 ITEM_ROWS ITEM_VALUES multiply-adds for ITEM_ROWS + 4 ITEM_VALUES reads.
INLINE void add_values(float4* sum, const local float4* weight, const local float4* value) {
  for (uint j = 0; j < SLICE_K / 4; ++j, value += 4 * V_STRIDE) {
    float4 part[ITEM_ROWS];
    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) part[r] = weight[LANES_Q * r * P_STRIDE + j];
    UNROLL for (uint i = 0; i < ITEM_VALUES; ++i) {
      const float4 value0 = value[LANES_K * i], value1 = value[LANES_K * i + V_STRIDE];
      const float4 value2 = value[LANES_K * i + 2 * V_STRIDE];
      const float4 value3 = value[LANES_K * i + 3 * V_STRIDE];
      UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
        float4 o = sum[r * ITEM_VALUES + i];
        o = fma((float4)(part[r].s0), value0, o);
        o = fma((float4)(part[r].s1), value1, o);
        o = fma((float4)(part[r].s2), value2, o);
        sum[r * ITEM_VALUES + i] = fma((float4)(part[r].s3), value3, o);
      }
    }
  }
}

// Maximum or sum of each row's statistic over the LANES_K items that share the row, by way of the
// memory of the weights.
INLINE void reduce_rows(float* statistic, bool is_sum, local float4* weights, uint lane_q,
                        uint lane_k) {
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r)
    ((local float*)(weights + (lane_q + LANES_Q * r) * P_STRIDE))[lane_k] = statistic[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  const local float4* rows = weights + lane_q * P_STRIDE;
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) statistic[r] = is_sum ? 0.0f : LOWEST_MAXIMUM;
  // Unrolled, this would hold all of it in registers at once.
  ROLLED for (uint i = 0; i < LANES_K / 4; ++i) {
    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      const float4 x = rows[LANES_Q * r * P_STRIDE + i];
      statistic[r] = is_sum ? statistic[r] + ((x.s0 + x.s1) + (x.s2 + x.s3))
                            : fmax(statistic[r], fmax(fmax(x.s0, x.s1), fmax(x.s2, x.s3)));
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

KERNEL void flash_attention_tile(const global scalar* restrict q, const global scalar* restrict k,
                                 const global scalar* restrict v, global scalar* restrict output,
                                 global float* restrict log_sum_exp,
                                 const struct FlashAttentionArgs a) {
  local float4 memory[TILE_VECTORS];
  local float4* query_tile = memory;
  local float4* key_tile = memory + Q_AREA;
  local float4* weight_tile = memory + (KEEP_Q ? Q_AREA : 0);
  local float4* value_tile = weight_tile + P_AREA;

  const uint item = get_local_id(0), lane_q = item / LANES_K, lane_k = item % LANES_K;
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = (int)(get_num_groups(0) - 1 - get_group_id(0)) * (int)BLOCK_Q;
  const int end_row = min(first_row + (int)BLOCK_Q, (int)a.q_len);
  const size_t head = get_group_id(1), batch = get_group_id(2), kv_head = head / a.group;

  // Keys [first_key, end_key) are seen by some row of the tile, [first_common, end_common) by all.
  const int first_key = max(first_row + a.band_low, 0), first_common = end_row - 1 + a.band_low;
  const int end_key = min(end_row + a.band_high, (int)a.kv_len);
  const int end_common = min(first_row + 1 + a.band_high, (int)a.kv_len);

  const Rows queries = {q + a.q_offset + batch * a.q_stride_batch + head * a.q_stride_head,
                        a.q_stride_row, HEAD_DIM, end_row};
  const Rows keys = {k + a.k_offset + batch * a.k_stride_batch + kv_head * a.k_stride_head,
                     a.k_stride_row, HEAD_DIM, end_key};
  const Rows values = {v + a.v_offset + batch * a.v_stride_batch + kv_head * a.v_stride_head,
                       a.v_stride_row, VALUE_DIM, end_key};

  const bool capped = a.soft_cap > 0.0f;
  const float inner = capped ? a.scale / a.soft_cap : a.scale * LOG2_E, outer = a.soft_cap * LOG2_E;

  float4 copies[TILE_COPIES], sum[ITEM_ROWS * ITEM_VALUES];
  float score[ITEM_ROWS * ITEM_KEYS], statistic[ITEM_ROWS], row_max[ITEM_ROWS], row_sum[ITEM_ROWS];
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
    row_max[r] = LOWEST_MAXIMUM;
    row_sum[r] = 0.0f;
  }
  UNROLL for (uint i = 0; i < ITEM_ROWS * ITEM_VALUES; ++i) sum[i] = (float4)(0.0f);

  if (KEEP_Q)
    for (uint slice = 0; slice < HEAD_SLICES; ++slice) {
      fetch_queries(copies, queries, first_row, slice, item);
      store_queries(query_tile, copies, slice, item);
    }
  if (PREFETCH) {
    fetch_keys(copies, keys, first_key, 0, item);
    if (!KEEP_Q) fetch_queries(copies, queries, first_row, 0, item);
  }

  for (int first = first_key; first < end_key; first += BLOCK_K) {
    UNROLL for (uint i = 0; i < ITEM_ROWS * ITEM_KEYS; ++i) score[i] = 0.0f;
    for (uint slice = 0; slice < HEAD_SLICES; ++slice) {
      if (!PREFETCH) {
        fetch_keys(copies, keys, first, slice, item);
        if (!KEEP_Q) fetch_queries(copies, queries, first_row, slice, item);
      }
      store_keys(key_tile, copies, item);
      if (!KEEP_Q) store_queries(query_tile, copies, 0, item);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (PREFETCH) {
        if (slice + 1 < HEAD_SLICES) {
          fetch_keys(copies, keys, first, slice + 1, item);
          if (!KEEP_Q) fetch_queries(copies, queries, first_row, slice + 1, item);
        } else {
          fetch_values(copies, values, first, 0, item);
        }
      }
      add_scores(score, query_tile + lane_q * Q_STRIDE + (KEEP_Q ? slice * SLICE_VECTORS : 0),
                 key_tile + lane_k * K_STRIDE);
      barrier(CLK_LOCAL_MEM_FENCE);
    }

    UNROLL for (uint i = 0; i < ITEM_ROWS * ITEM_KEYS; ++i) score[i] *= inner;
    if (capped) {
      UNROLL for (uint i = 0; i < ITEM_ROWS * ITEM_KEYS; ++i)
        score[i] = outer * saturating_tanh(score[i]);
    }
    if (first < first_common || first + (int)BLOCK_K > end_common) {
      const int key = first + (int)(lane_k * 4), distance = key - first_row - (int)lane_q;
      UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
        UNROLL for (uint c = 0; c < ITEM_KEYS; ++c) {
          const int step = (int)(c / 4 * LANES_K * 4 + c % 4);
          const int away = distance + step - (int)(LANES_Q * r);
          const bool visible =
              away >= a.band_low && away <= a.band_high && key + step < (int)a.kv_len;
          if (!visible) score[r * ITEM_KEYS + c] = MASKED_SCORE;
        }
      }
    }

    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      statistic[r] = row_max[r];
      UNROLL for (uint c = 0; c < ITEM_KEYS; ++c)
        statistic[r] = fmax(statistic[r], score[r * ITEM_KEYS + c]);
    }
    reduce_rows(statistic, false, weight_tile, lane_q, lane_k);
    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      const float rescale = exp2(row_max[r] - statistic[r]);
      row_max[r] = statistic[r];
      row_sum[r] *= rescale;
      UNROLL for (uint i = 0; i < ITEM_VALUES; ++i) sum[r * ITEM_VALUES + i] *= rescale;
      UNROLL for (uint g = 0; g < ITEM_KEYS / 4; ++g) {
        const float* s = score + r * ITEM_KEYS + g * 4;
        const float4 weight = exp2((float4)(s[0], s[1], s[2], s[3]) - row_max[r]);
        row_sum[r] += (weight.s0 + weight.s1) + (weight.s2 + weight.s3);
        weight_tile[(lane_q + LANES_Q * r) * P_STRIDE + lane_k + LANES_K * g] = weight;
      }
    }

    // Slices that start behind the last visible key would add zeros.
    const uint slices =
        min((uint)(end_key - first + SLICE_K - 1) / SLICE_K, (uint)(BLOCK_K / SLICE_K));
    for (uint slice = 0; slice < slices; ++slice) {
      if (!PREFETCH) fetch_values(copies, values, first, slice, item);
      store_values(value_tile, copies, item);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (PREFETCH) {
        if (slice + 1 < slices) {
          fetch_values(copies, values, first, slice + 1, item);
        } else {
          fetch_keys(copies, keys, first + (int)BLOCK_K, 0, item);
          if (!KEEP_Q) fetch_queries(copies, queries, first_row, 0, item);
        }
      }
      add_values(sum, weight_tile + lane_q * P_STRIDE + slice * (SLICE_K / 4), value_tile + lane_k);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  // A row that saw nothing has row_sum 0; a NaN in row_sum must show in both results.
  reduce_rows(row_sum, true, weight_tile, lane_q, lane_k);
  output += a.o_offset + batch * a.o_stride_batch + head * a.o_stride_head;
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
    const int row = first_row + (int)(lane_q + LANES_Q * r);
    if (row >= end_row) continue;
    const float norm = row_sum[r] == 0.0f ? 0.0f : 1.0f / row_sum[r];
    global scalar* to = output + (size_t)row * a.o_stride_row;
    UNROLL for (uint i = 0; i < ITEM_VALUES; ++i) {
      const uint column = (lane_k + LANES_K * i) * 4;
      const float4 o = sum[r * ITEM_VALUES + i] * norm;
      if (ALIGNED) {
        if (column < VALUE_DIM) store_scalar4(o, to, column);
      } else {
        if (column + 0 < VALUE_DIM) store_scalar(o.s0, to, column + 0);
        if (column + 1 < VALUE_DIM) store_scalar(o.s1, to, column + 1);
        if (column + 2 < VALUE_DIM) store_scalar(o.s2, to, column + 2);
        if (column + 3 < VALUE_DIM) store_scalar(o.s3, to, column + 3);
      }
    }
    if (a.write_lse && lane_k == 0)
      log_sum_exp[a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head + row] =
          row_sum[r] == 0.0f ? -INFINITY : (row_max[r] + log2(row_sum[r])) * LN_2;
  }
}
