// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first, and a share of their keys; head; batch.
// Memory   k and v once per query tile, q once (KEEP_Q) or with every BLOCK_K keys.
// Numerics Float; base-2 softmax with running maximum; keys in order; one rounding to DTYPE.
// Assumes  ATTN_TILE_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie.
//
// One step takes BLOCK_K keys. ATTN_LANES_Q x ATTN_LANES_K items lie over both products in the same way, so
// the rows, with their maxima, sums and outputs, never leave their items; only the weights p cross
// lanes, through local memory, where the slices of q, k and v are staged too (as float).
//
//                 BLOCK_K keys                                 value columns
//           +----------------------+                      +----------------------+
//  BLOCK_Q  | scores, added up by  | mask, softmax,       | output, added up by  |
//  queries  | SLICE_D features     | p to local memory    | SLICE_K keys         |
//           +----------------------+                      +----------------------+
//  Item (lane_q, lane_k): rows lane_q + ATTN_LANES_Q r, columns 4 (lane_k + ATTN_LANES_K g) + 0..3 of both.
//
// Registers hold ITEM_ROWS x ATTN_ITEM_KEYS scores and ITEM_ROWS x 4 ATTN_ITEM_VALUES outputs, where
//   ATTN_LANES_K = WG_X ITEM_ROWS / BLOCK_Q, ATTN_ITEM_KEYS = BLOCK_K / ATTN_LANES_K,
//   ATTN_ITEM_VALUES = ceil(VALUE_DIM / (4 ATTN_LANES_K)); ATTN_TILE_REGISTERS estimates the whole.
// Local memory is ATTN_TILE_LOCAL_BYTES = 16 (Q + max(K, P + V)) if KEEP_Q else 16 max(Q + K, P + V),
//   Q = BLOCK_Q odd(KEEP_Q ? SLICE_D / 4 ceil(HEAD_DIM / SLICE_D) : SLICE_D / 4),
//   K = BLOCK_K odd(SLICE_D / 4), P = BLOCK_Q odd(BLOCK_K / 4), V = SLICE_K ATTN_LANES_K ATTN_ITEM_VALUES,
//   odd(n) = n | 1.
// A value that is not finite reaches the rows that give its key a weight.
//
// Rows are (query row, head) pairs where `pack` heads share keys. With splits, a group takes every
// key of its share only, and leaves {sum, maximum, total} for attention/core/combine.
#include "attention/core/interval.clh"
#include "attention/core/work.clh"
#include "attention/tile/forward_slices.clh"
#include "attention/tile/forward_products.clh"

#if POLICY && !LISTED
INLINE Interval interval_of(const Policies* policies, uint batch, int first_row, int last_row) {
  Interval at = interval_of_no_row();
  for (int row = first_row; row <= last_row; ++row) {
    interval_add_entry(&at, ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + row));
  }
  return at;
}
#endif

#if POLICY
// Factors of the four keys from `key` on.
INLINE float4 keep_of(const Policies* policies, uint batch, uint head, uint row, int key) {
  const RowPolicy at = policy_row(policies, batch, head, row);
  return (float4)(policy_keep(policies, at, key), policy_keep(policies, at, key + 1),
                  policy_keep(policies, at, key + 2), policy_keep(policies, at, key + 3));
}
#endif

// One split's share of an interval, in whole tiles from multiples of BLOCK_K on: what a row adds up
// in which order depends on nothing but its own keys and the number of splits. Tiles of the work list begin where
// their sequence does, and so do its keys.
INLINE Interval share_of(Interval at, uint split, uint splits) {
#if !LISTED
  at.first = at.first / (int)BLOCK_K * (int)BLOCK_K;
#endif
  if (splits > 1) {
    const int tiles = (at.end - at.first + (int)BLOCK_K - 1) / (int)BLOCK_K;
    const int share = (max(tiles, 0) + (int)splits - 1) / (int)splits * (int)BLOCK_K;
    at.first += (int)split * share;
    at.end = min(at.end, at.first + share);
  }
  return at;
}

KERNEL void attention_tile(const global scalar* restrict q, const global key_scalar* restrict k,
                           const global key_scalar* restrict v, global scalar* restrict output,
                           global float* restrict log_sum_exp, global float* scratch,
                           CALL_PARAMETERS) {
#if POLICY
  MAKE_PAGING(call)
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
#endif
  local float4 memory[ATTN_TILE_VECTORS];
  local float4* query_tile = memory;
  local float4* key_tile = memory + ATTN_Q_AREA;
  local float4* weight_tile = memory + (KEEP_Q ? ATTN_Q_AREA : 0);
  local float4* value_tile = weight_tile + ATTN_P_AREA;

  const uint item = get_local_id(0), lane_q = item / ATTN_LANES_K, lane_k = item % ATTN_LANES_K;
  // Under a causal mask the last tiles take longest, so they start first.
  const uint tiles = get_num_groups(0) / a.splits, split = get_group_id(0) / tiles;
#if PAGED
  Tile tile = {(tiles - 1 - get_group_id(0) % tiles) * BLOCK_Q, 0, get_group_id(2), 0};
  tile.end = min(tile.first + (uint)BLOCK_Q, a.q_len * a.pack);
  if ((call.policy.features & POLICY_WORK) != 0)
    tile = listed_tile((const global int4*)scratch, call.policy.map, tiles - 1 - get_group_id(0) % tiles);
  const int first_row = (int)tile.first, end_row = (int)tile.end;
#elif LISTED
  const Tile tile = listed_tile((const global int4*)scratch, call.policy.map, tiles - 1 - get_group_id(0) % tiles);
  const int first_row = (int)tile.first, end_row = (int)tile.end;
#else
  const int first_row = (int)(tiles - 1 - get_group_id(0) % tiles) * (int)BLOCK_Q;
  const int end_row = min(first_row + (int)BLOCK_Q, (int)(a.q_len * a.pack));
#endif
  const size_t first_head = get_group_id(1) * a.pack, batch = get_group_id(2);
  const size_t kv_head = first_head / a.group;
#if PAGED  // without rows beyond the work list
  const Interval all =
      interval_of(policies, batch, first_row / (int)a.pack, (end_row + (int)a.pack - 1) / (int)a.pack - 1);
#elif LISTED
  const int4 listed = listed_keys((const global int4*)scratch, tile);
  const Interval all = {listed.s0, listed.s1, listed.s2, listed.s3};
#elif POLICY
  const Interval all = interval_of(policies, batch, first_row / a.pack, (end_row - 1) / a.pack);
#else
  const Interval all = band_interval(&a, first_row / a.pack, (end_row - 1) / a.pack);
#endif
  const Interval at = share_of(all, split, a.splits);

  const Rows queries = {q + a.q_offset + batch * a.q_stride_batch + first_head * a.q_stride_head,
                        a.q_stride_row, HEAD_DIM, end_row, a.pack, a.q_stride_head};
  const KeyRows keys = {
      KEY_ELEMENTS(k, a.k_offset + KEYS_OF(batch) * a.k_stride_batch + kv_head * a.k_stride_head),
      KEY_PLACES(a.k_stride_row, a.k_stride_batch, tile.sequence), HEAD_DIM, at.end
      AND_SCALES(key_scale, call.key_scales, batch, kv_head, tile.sequence)};
  const KeyRows values = {
      KEY_ELEMENTS(v, a.v_offset + KEYS_OF(batch) * a.v_stride_batch + kv_head * a.v_stride_head),
      KEY_PLACES(a.v_stride_row, a.v_stride_batch, tile.sequence), VALUE_DIM, at.end
      AND_SCALES(value_scale, call.value_scales, batch, kv_head, tile.sequence)};

#if !POLICY
  const bool capped = a.soft_cap > 0.0f;
  const float inner = capped ? a.scale / a.soft_cap : a.scale * LOG2_E, outer = a.soft_cap * LOG2_E;
#endif
  float4 copies[ATTN_TILE_COPIES], sum[ITEM_ROWS * ATTN_ITEM_VALUES];
  float score[ITEM_ROWS * ATTN_ITEM_KEYS], statistic[ITEM_ROWS], row_max[ITEM_ROWS], row_sum[ITEM_ROWS];
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
    row_max[r] = LOWEST_MAXIMUM;
    row_sum[r] = 0.0f;
  }
  UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_VALUES; ++i) sum[i] = (float4)(0.0f);

  if (KEEP_Q)
    for (uint slice = 0; slice < ATTN_HEAD_SLICES; ++slice) {
      fetch_queries(copies, queries, first_row, slice, item);
      store_queries(query_tile, copies, slice, item);
    }
  if (PREFETCH) {
    fetch_keys(copies, keys, at.first, 0, item);
    if (!KEEP_Q) fetch_queries(copies, queries, first_row, 0, item);
  }

  for (int first = at.first; UNIFORM(first < at.end); first += BLOCK_K) {
#if POLICY
    const uint state = map_state(policies, batch, first_head, first_row / BLOCK_Q, first / BLOCK_K);
    if (state == MAP_NOTHING) {
      if (PREFETCH) fetch_keys(copies, keys, first + (int)BLOCK_K, 0, item);
      continue;
    }
#endif
    UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] = 0.0f;
    for (uint slice = 0; slice < ATTN_HEAD_SLICES; ++slice) {
      if (!PREFETCH) {
        fetch_keys(copies, keys, first, slice, item);
        if (!KEEP_Q) fetch_queries(copies, queries, first_row, slice, item);
      }
      store_keys(key_tile, copies, item);
      if (!KEEP_Q) store_queries(query_tile, copies, 0, item);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (PREFETCH) {
        if (slice + 1 < ATTN_HEAD_SLICES) {
          fetch_keys(copies, keys, first, slice + 1, item);
          if (!KEEP_Q) fetch_queries(copies, queries, first_row, slice + 1, item);
        } else {
          fetch_values(copies, values, first, 0, item);
        }
      }
      add_scores(score, query_tile + lane_q * ATTN_Q_STRIDE + (KEEP_Q ? slice * ATTN_SLICE_VECTORS : 0),
                 key_tile + lane_k * ATTN_K_STRIDE);
      barrier(CLK_LOCAL_MEM_FENCE);
    }

    const bool all_visible = first >= at.common_first && first + (int)BLOCK_K <= at.common_end;
#if POLICY
    const uint features = call.policy.features;
    // A bias hides where it is -infinity.
    const bool every = all_visible && (features & POLICY_BIAS) == 0 &&
                       ((features & POLICY_HIDES) == 0 || state == MAP_ALL);
    const bool plain = every && (features & POLICY_ADDS) == 0 && a.soft_cap == 0.0f;
    if (plain) {
      UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] *= a.scale * LOG2_E;
    } else {
      ROLLED for (uint r = 0; r < ITEM_ROWS; ++r) {
        const uint row = first_row + lane_q + ATTN_LANES_Q * r;
        if ((int)row >= end_row) continue;
        const RowPolicy policy =
            policy_row(policies, batch, first_head + row % a.pack, row / a.pack);
        ROLLED for (uint c = 0; c < ATTN_ITEM_KEYS; ++c) {
          const int key = first + (int)((lane_k + c / 4 * ATTN_LANES_K) * 4 + c % 4);
          const uint i = r * ATTN_ITEM_KEYS + c;
          score[i] = policy_sees(policies, policy, key)
                         ? policy_score(policies, policy, key, score[i] * a.scale).s0
                         : MASKED_SCORE;
        }
      }
    }
#else
    const bool every = all_visible;
    UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] *= inner;
    if (capped) {
      UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i)
        score[i] = outer * saturating_tanh(score[i]);
    }
    if (!all_visible) {
      const int key = first + (int)(lane_k * 4);
      UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
        const int row = (first_row + (int)(lane_q + ATTN_LANES_Q * r)) / (int)a.pack;
        UNROLL for (uint c = 0; c < ATTN_ITEM_KEYS; ++c) {
          const int step = (int)(c / 4 * ATTN_LANES_K * 4 + c % 4), away = key + step - row;
          const bool visible =
              away >= a.band_low && away <= a.band_high && key + step < (int)a.kv_len;
          if (!visible) score[r * ATTN_ITEM_KEYS + c] = MASKED_SCORE;
        }
      }
    }
#endif

    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      statistic[r] = row_max[r];
      UNROLL for (uint c = 0; c < ATTN_ITEM_KEYS; ++c)
        statistic[r] = fmax(statistic[r], score[r * ATTN_ITEM_KEYS + c]);
    }
    reduce_rows(statistic, false, weight_tile, lane_q, lane_k);
    UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
      const float rescale = exp2(row_max[r] - statistic[r]);
      row_max[r] = statistic[r];
      row_sum[r] *= rescale;
      UNROLL for (uint i = 0; i < ATTN_ITEM_VALUES; ++i) sum[r * ATTN_ITEM_VALUES + i] *= rescale;
      UNROLL for (uint g = 0; g < ATTN_ITEM_KEYS / 4; ++g) {
        const float* s = score + r * ATTN_ITEM_KEYS + g * 4;
        float4 weight = exp2((float4)(s[0], s[1], s[2], s[3]) - row_max[r]);
        row_sum[r] += (weight.s0 + weight.s1) + (weight.s2 + weight.s3);
#if POLICY
        const uint row = first_row + lane_q + ATTN_LANES_Q * r;
        if ((features & POLICY_DROPOUT) != 0 && (int)row < end_row)
          weight *= keep_of(policies, batch, first_head + row % a.pack, row / a.pack,
                            first + (int)((lane_k + ATTN_LANES_K * g) * 4));
#endif
        weight_tile[(lane_q + ATTN_LANES_Q * r) * ATTN_P_STRIDE + lane_k + ATTN_LANES_K * g] = weight;
      }
    }

    // Slices that start behind the last visible key would add zeros.
    const uint slices =
        min((uint)(at.end - first + SLICE_K - 1) / SLICE_K, (uint)(BLOCK_K / SLICE_K));
    for (uint slice = 0; UNIFORM(slice < slices); ++slice) {
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
      const local float4* weights = weight_tile + lane_q * ATTN_P_STRIDE + slice * (SLICE_K / 4);
      if (every) {
        add_values(sum, weights, value_tile + lane_k);
      } else {
        add_seen_values(sum, weights, value_tile + lane_k);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  // A row that saw nothing has row_sum 0; a NaN in row_sum must show in both results.
  reduce_rows(row_sum, true, weight_tile, lane_q, lane_k);
  const size_t batches = get_num_groups(2), rows = batches * a.heads * a.q_len;
  global float* sums = scratch + a.partials;
  global float* totals = sums + a.splits * rows * VALUE_DIM;
  UNROLL for (uint r = 0; r < ITEM_ROWS; ++r) {
    const int packed_row = first_row + (int)(lane_q + ATTN_LANES_Q * r);
    if (packed_row >= end_row) continue;
    const uint row = packed_row / a.pack, head = first_head + packed_row % a.pack;
    if (a.splits > 1) {
      const size_t part = split * rows + (batch * a.heads + head) * a.q_len + row;
      UNROLL for (uint i = 0; i < ATTN_ITEM_VALUES; ++i) {
        const uint column = (lane_k + ATTN_LANES_K * i) * 4;
        const float4 o = sum[r * ATTN_ITEM_VALUES + i];
        if (column + 0 < VALUE_DIM) sums[part * VALUE_DIM + column + 0] = o.s0;
        if (column + 1 < VALUE_DIM) sums[part * VALUE_DIM + column + 1] = o.s1;
        if (column + 2 < VALUE_DIM) sums[part * VALUE_DIM + column + 2] = o.s2;
        if (column + 3 < VALUE_DIM) sums[part * VALUE_DIM + column + 3] = o.s3;
      }
      if (lane_k == 0) {
        totals[2 * part] = row_max[r];
        totals[2 * part + 1] = row_sum[r];
      }
      continue;
    }
#if POLICY
    const float2 total = policy_sinks(policies, head, row_max[r], row_sum[r]);
    const float shrink = exp2(row_max[r] - total.s0);
    const float norm = total.s1 == 0.0f                                  ? 0.0f
                       : (call.policy.features & POLICY_UNNORMALIZED) != 0 ? shrink
                                                                         : shrink / total.s1;
    const float lse = policy_log_sum_exp(policies, total.s0, total.s1);
#else
    const float2 total = (float2)(row_max[r], row_sum[r]);
    const float norm = total.s1 == 0.0f ? 0.0f : 1.0f / total.s1;
    const float lse = (total.s0 + log2(total.s1)) * LN_2;
#endif
    global scalar* to = output + a.o_offset + batch * a.o_stride_batch + (size_t)head * a.o_stride_head +
                        (size_t)row * a.o_stride_row;
    UNROLL for (uint i = 0; i < ATTN_ITEM_VALUES; ++i) {
      const uint column = (lane_k + ATTN_LANES_K * i) * 4;
      const float4 o = sum[r * ATTN_ITEM_VALUES + i] * norm;
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
          total.s1 == 0.0f ? -INFINITY : lse;
  }
}
