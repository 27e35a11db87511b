// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first, and a share of their keys; head; batch.
// Memory   k and v once per query tile, q once, by asynchronous copies.
// Numerics Float sums of products of f16 or bf16, or of floats as lib/mma/float_products.clh has it;
//          base-2 softmax with running maximum; keys in order; weights are rounded to the storage
//          type, their sum is not.
// Assumes  sm_80, ATTN_MMA_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is
//          no lie.
//
// A warp has ATTN_WARP_ROWS query rows, 16 to a tile of the matrix instruction. What one product leaves
// in an item's registers is what the other takes, so weights never leave them.
//
//                      BLOCK_K keys                              value columns
//                +----------------------+                   +----------------------+
//     ATTN_WARP_ROWS  | scores: q and k from | mask, softmax,    | output: weights in   | warp 0
//     queries    | local memory         | weights packed    | registers, v from    |
//                |                      | where scores were | local memory         |
//                +----------------------+ ................. +----------------------+ warp 1
//
// STAGES = 1: values are copied while the scores are computed, and the next keys while the outputs
// are. STAGES = 2: the next keys and values are copied during the whole step, for one barrier less.
//
// A value that is not finite makes the sums of all rows of a group NaN whose tiles hold its key, as
// does an infinite float of a key, of which splitting makes NaN. Such rows are computed again, by
// attention/core/exact_row, from the keys that they see alone.
// With splits, a group takes every key of its share only, and leaves {sum, maximum, total} for
// attention/core/combine.
// With PAGED=1 a group has the rows of an item of the work list, which are of one sequence. Keys of no page
// are zeros, and the rows that would see them are computed again like those; there are no masks, biases or dropout.
#include "attention/core/key_rows.clh"
#include "attention/mma/rows.clh"

// An item has rows lane / 4 + 8 r of its warp. In local arrays, row r comes at r * SCORES and at
// r * OUTPUTS, in pairs of columns 8 n + 2 (lane % 4) + {0, 1}.
#define ROWS (2 * ATTN_ROW_TILES)
#define SCORES (BLOCK_K / 4)
#define OUTPUTS (ATTN_VALUE_STEPS * 4)

#include "attention/mma/forward_products.clh"
#include "attention/mma/softmax.clh"
#include "attention/core/exact_row.clh"
// Whether policies may ask for single pairs.
#define PAIRS (POLICY && !PAGED)
#if PAIRS
#include "attention/core/unseen.clh"
#endif
#if PAGED
#include "attention/core/work.clh"
#define END_ROW ((int)listed.end)
MMA_COPY_PLACED_ROWS(copy_key_rows, KeyPlaces, key_exists, key_at)
#else
#define END_ROW ((int)a.q_len)
#endif

// Of a row whose weights are 2^(score - shift) and add up to `sum`: what its sums are multiplied by,
// and its log-sum-exp. A row that saw nothing has the sum 0; a NaN in the sum must show in both.
typedef struct {
  float norm, log_sum_exp;
} Total;
#if POLICY
INLINE Total total_of(const Policies* policies, uint head, float shift, float sum) {
  const float2 all = policy_sinks(policies, head, shift, sum);
  const float shrink = exp2(shift - all.s0);
  const float norm = (RULE(features) & POLICY_UNNORMALIZED) != 0 ? shrink : shrink / all.s1;
  const float lse = policy_log_sum_exp(policies, all.s0, all.s1);
#define TOTAL_OF(shift, sum) total_of(policies, head, shift, sum)
#else
INLINE Total total_of(float shift, float sum) {
  const float2 all = (float2)(shift, sum);
  const float norm = 1.0f / sum, lse = (shift + log2(sum)) * LN_2;
#define TOTAL_OF(shift, sum) total_of(shift, sum)
#endif
  const Total total = {all.s1 == 0.0f ? 0.0f : norm, all.s1 == 0.0f ? -INFINITY : lse};
  return total;
}

KERNEL void attention_mma(const global scalar* restrict q, const global scalar* restrict k,
                          const global scalar* restrict v, global scalar* restrict output,
                          global float* restrict log_sum_exp, global float* scratch,
                          CALL_PARAMETERS) {
#if POLICY
  MAKE_PAGING(call)
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const struct AttentionArgs a = call.core;
#endif
  local uchar memory[ATTN_MMA_LOCAL_BYTES] __attribute__((aligned(128)));
  const uint local_memory = LOCAL_ADDRESS(memory);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  // Under a causal mask the last tiles take longest, so they start first.
  const uint tiles = get_num_groups(0) / a.splits, split = get_group_id(0) / tiles;
#if PAGED
  const Tile listed =
      listed_tile((const global int4*)scratch, call.policy.map, tiles - 1 - get_group_id(0) % tiles);
  if (listed.first >= listed.end) return;
  const int first_row = (int)listed.first;
#else
  const int first_row = (int)(tiles - 1 - get_group_id(0) % tiles) * (int)BLOCK_Q;
#endif
  const int warp_row = first_row + (int)(warp * ATTN_WARP_ROWS), row = warp_row + (int)(lane / 4);
  const uint head = get_group_id(1), kv_head = head / a.group;
  const size_t batch = get_group_id(2);

  // What the group sees, and what the warp.
#if POLICY
  local int* bounds = (local int*)memory;
#if PAGED
  bool missing;
  const Interval own = listed_interval(policies, warp_row, END_ROW, lane, &missing);
#else
  const Interval own = interval_of(policies, batch, warp_row, lane);
#endif
  if (item == 0) bounds[0] = INDEX_MAX, bounds[1] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0) atomic_min(&bounds[0], own.first), atomic_max(&bounds[1], own.end);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int begin = bounds[0], all_end = bounds[1];
  barrier(CLK_LOCAL_MEM_FENCE);
#else
  const int last_row = (int)a.q_len - 1;
  const Interval own = band_interval(&a, warp_row, min(warp_row + (int)ATTN_WARP_ROWS - 1, last_row));
  const Interval all = band_interval(&a, first_row, min(first_row + (int)BLOCK_Q - 1, last_row));
  const int begin = all.first, all_end = all.end;
#endif
  // One split's share, in whole tiles from multiples of BLOCK_K on: what a row adds up in which
  // order depends on nothing but its own keys and the number of splits.
  int tile = begin / (int)BLOCK_K * (int)BLOCK_K, end = all_end;
  if (a.splits > 1) {
    const int count = (end - tile + (int)BLOCK_K - 1) / (int)BLOCK_K;
    const int share = (max(count, 0) + (int)a.splits - 1) / (int)a.splits * (int)BLOCK_K;
    tile += (int)split * share;
    end = min(end, tile + share);
  }
#if PAIRS
#define SKIP_HIDDEN(tile)                                                                 \
  while (tile < end && tile_state(policies, batch, head, first_row, tile) == MAP_NOTHING) \
  tile += (int)BLOCK_K
#else
#define SKIP_HIDDEN(tile)
#endif
  const int first_tile = tile;
  SKIP_HIDDEN(tile);

  const MmaMatrix queries = {
      .data = q + a.q_offset + batch * a.q_stride_batch + (size_t)head * a.q_stride_head,
      .stride = a.q_stride_row,
      .end = END_ROW};
  const MmaMatrix keys = {
      .data = k + a.k_offset + KEYS_OF(batch) * a.k_stride_batch + (size_t)kv_head * a.k_stride_head,
      .stride = a.k_stride_row,
      .begin = begin,
      .end = end};
  const MmaMatrix values = {
      .data = v + a.v_offset + KEYS_OF(batch) * a.v_stride_batch + (size_t)kv_head * a.v_stride_head,
      .stride = a.v_stride_row,
      .begin = begin,
      .end = end};
  const uint key_tiles = local_memory + ATTN_K_START, value_tiles = local_memory + ATTN_V_START;
#if PAGED
  const KeyPlaces key_places = KEY_PLACES(a.k_stride_row, a.k_stride_batch, listed.sequence);
  const KeyPlaces value_places = KEY_PLACES(a.v_stride_row, a.v_stride_batch, listed.sequence);
#define COPY_KEYS(tile, stage)                                                                        \
  copy_key_rows(key_tiles + (stage)*ATTN_K_BYTES, keys, key_places, tile, BLOCK_K, HEAD_DIM, ATTN_HEAD_PITCH, \
                item)
#define COPY_VALUES(tile, stage)                                                                   \
  copy_key_rows(value_tiles + (stage)*ATTN_V_BYTES, values, value_places, tile, BLOCK_K, VALUE_DIM, \
                ATTN_VALUE_PITCH, item)
#else
#define COPY_KEYS(tile, stage) \
  mma_copy_rows(key_tiles + (stage)*ATTN_K_BYTES, keys, tile, BLOCK_K, HEAD_DIM, ATTN_HEAD_PITCH, item)
#define COPY_VALUES(tile, stage) \
  mma_copy_rows(value_tiles + (stage)*ATTN_V_BYTES, values, tile, BLOCK_K, VALUE_DIM, ATTN_VALUE_PITCH, item)
#endif

  const uint query_at =
      local_memory + warp * ATTN_WARP_ROWS * ATTN_HEAD_PITCH + mma_place_of_a(lane, ATTN_HEAD_PITCH);
  const uint key_at = key_tiles + mma_place_of_b(lane, ATTN_HEAD_PITCH);
  const uint value_at = value_tiles + place_of_values(lane);

#if PAIRS
  const bool natural = (call.policy.features & POLICY_BIAS) != 0;  // see attention/core/natural_score
  const float scale = natural ? LOG2_E : 1.0f;
#else
  const bool natural = false;
  const float scale = GENERAL_SCORE ? 1.0f : a.scale * LOG2_E;  // of the scores
#endif
  float score[ROWS * SCORES], sums[ROWS * OUTPUTS], most[ROWS], sum[ROWS];
  uint query[(KEEP_Q + 1) * ATTN_ROW_TILES * 4];
  UNROLL for (uint r = 0; r < ROWS; ++r) most[r] = natural ? MASKED_SCORE : NO_MAXIMUM, sum[r] = 0.0f;
  UNROLL for (uint i = 0; i < ROWS * OUTPUTS; ++i) sums[i] = 0.0f;

  mma_copy_rows(local_memory, queries, first_row, BLOCK_Q, HEAD_DIM, ATTN_HEAD_PITCH, item);
  if (KEEP_Q > 0) {
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (uint step = 0; step < KEEP_Q; ++step)
      load_queries(query + step * ATTN_ROW_TILES * 4, query_at, step);
  }
  if (tile < end) {
    COPY_KEYS(tile, 0);
    if (STAGES == 2) COPY_VALUES(tile, 0);
  }

  uint stage = 0;
  while (tile < end) {
    int next = tile + (int)BLOCK_K;
    SKIP_HIDDEN(next);
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (STAGES == 1) {
      COPY_VALUES(tile, 0);
    } else if (next < end) {
      COPY_KEYS(next, stage ^ 1);
      COPY_VALUES(next, stage ^ 1);
    }

    const bool seen = tile < own.end && tile + (int)BLOCK_K > own.first;
    const int key = tile + (int)(lane % 4 * 2);  // of this item, the first
    if (seen) {
      take_scores(score, query, query_at, key_at + stage * ATTN_K_BYTES);
      const bool all_visible = tile >= own.common_first && tile + (int)BLOCK_K <= own.common_end;
#if PAIRS
      const uint features = call.policy.features;
      const bool hides = (features & POLICY_HIDES) != 0 &&
                         tile_state(policies, batch, head, first_row, tile) != MAP_ALL;
      if (hides || (features & POLICY_ADDS) != 0) {
        apply_policies(score, policies, batch, head, row, key, natural);
      } else
#endif
      {
        finish_scores(score, a.scale, a.soft_cap);
        if (!all_visible) {
          int low[ROWS], high[ROWS];
          UNROLL for (uint r = 0; r < ROWS; ++r) {
            const int own_row = row + 8 * (int)r;
#if POLICY
            const int4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) +
                                         min(own_row, (int)CORE(q_len) - 1));
            low[r] = entry.s0, high[r] = entry.s1;
#else
            low[r] = own_row + a.band_low;
            high[r] = min(own_row + a.band_high + 1, (int)a.kv_len);
#endif
          }
          mask_scores(score, low, high, key);
        }
      }
      take_maxima(most, sum, sums, score, scale);
    }

    if (STAGES == 1) {
      mma_copy_wait();
      barrier(CLK_LOCAL_MEM_FENCE);
      if (next < end) COPY_KEYS(next, 0);
    }
#if PAIRS
    // Else rows would be computed again for the sake of padding.
    if ((call.policy.features & POLICY_HIDES) != 0 &&
        tile_state(policies, batch, head, first_row, tile) != MAP_ALL) {
#define ASKED(key)                                                                         \
  is_seen(policies, batch, head, first_row, min(first_row + (int)BLOCK_Q, (int)a.q_len), key, lane)
      CLEAR_UNSEEN(value_tiles + stage * ATTN_V_BYTES, BLOCK_K, ATTN_VALUE_PITCH, tile, ASKED);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    if (seen) {
      take_exponentials(score, sum, most, scale, natural);
#if PAIRS
      if ((call.policy.features & POLICY_DROPOUT) != 0)
        drop_weights(score, policies, batch, head, row, key);
#endif
      add_outputs(sums, score, value_at + stage * ATTN_V_BYTES);
    }
    if (STAGES == 2) stage ^= 1;
    tile = next;
  }

  UNROLL for (uint r = 0; r < ROWS; ++r) {
    sum[r] = quad_sum(sum[r]);
    most[r] = natural ? exponent_of_score(most[r]) : most[r] * scale;
  }
  // With halves, a row whose weights are not finite sees what makes them so, unless a bias hides it.
  bool not_finite[ROWS];
  UNROLL for (uint r = 0; r < ROWS; ++r) {
    not_finite[r] = isnan(mma_zero_of(sums + r * OUTPUTS, OUTPUTS));
#if DTYPE != DTYPE_F32
    if (!natural) not_finite[r] = not_finite[r] && !isnan(sum[r]);
#endif
  }
#if PAGED
  UNROLL for (uint r = 0; r < ROWS; ++r) not_finite[r] = not_finite[r] || missing;
#endif
  const uint odd = mma_odd_rows(not_finite, ROWS);
  const size_t rows = get_num_groups(2) * a.heads * a.q_len;
  global float* partial = scratch + a.partials;
  global float* totals = partial + a.splits * rows * VALUE_DIM;
  global scalar* to =
      output + a.o_offset + batch * a.o_stride_batch + (size_t)head * a.o_stride_head;
  global float* lse =
      log_sum_exp + a.lse_offset + batch * a.lse_stride_batch + head * a.lse_stride_head;
  if (a.splits > 1) {
    UNROLL for (uint r = 0; r < ROWS; ++r) {
      const int own_row = row + 8 * (int)r;
      if (own_row >= END_ROW) continue;
      const size_t part = split * rows + (batch * a.heads + head) * a.q_len + own_row;
      UNROLL for (uint i = 0; i < OUTPUTS; ++i) {
        const uint column = OUTPUT_COLUMN(i);
        if (column < VALUE_DIM) partial[part * VALUE_DIM + column] = sums[r * OUTPUTS + i];
      }
      if (lane % 4 == 0) {
        totals[2 * part] = most[r];
        totals[2 * part + 1] = sum[r];
      }
    }
  } else {
    // Outputs go where the inputs were: these have arrived, needed or not, and were read.
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (uint r = 0; r < ROWS; ++r) {
      const int own_row = row + 8 * (int)r;
      const Total all = TOTAL_OF(most[r], sum[r]);
      const float norm = all.norm;
#if DTYPE == DTYPE_F32
      if (own_row < END_ROW)
        store_outputs(to + (size_t)own_row * a.o_stride_row, sums + r * OUTPUTS, norm, lane);
#else
      UNROLL for (uint i = 0; i < OUTPUTS; i += 2) {
        const float low = sums[r * OUTPUTS + i] * norm, high = sums[r * OUTPUTS + i + 1] * norm;
#if ALIGNED
        const uint local_row = warp * ATTN_WARP_ROWS + lane / 4 + 8 * r;
        store_local(local_memory + local_row * ATTN_VALUE_PITCH + (i / 2 ^ lane / 4) * 16 + lane % 4 * 4,
                    pack_scalars(low, high));
#else
        if (own_row >= END_ROW) continue;
        const uint column = OUTPUT_COLUMN(i);
        if (column < VALUE_DIM) store_scalar(low, to + (size_t)own_row * a.o_stride_row, column);
        if (column + 1 < VALUE_DIM)
          store_scalar(high, to + (size_t)own_row * a.o_stride_row, column + 1);
#endif
      }
#endif
      if (a.write_lse && lane % 4 == 0 && own_row < END_ROW)
        lse[own_row] = all.log_sum_exp;
    }
#if ALIGNED && DTYPE != DTYPE_F32
    WARP_SYNC();
    const uint chunks = VALUE_DIM / 8;
    for (uint i = lane; i < ATTN_WARP_ROWS * chunks; i += 32) {
      const uint warp_local_row = i / chunks, chunk = i % chunks;
      const int own_row = warp_row + (int)warp_local_row;
      if (own_row >= END_ROW) break;
      const uint4 x = load_local4(local_memory + (warp * ATTN_WARP_ROWS + warp_local_row) * ATTN_VALUE_PITCH +
                                  (chunk ^ (warp_local_row & 7)) * 16);
      *(global uint4*)(to + (size_t)own_row * a.o_stride_row + chunk * 8) = x;
    }
#endif
  }

  if (odd == 0) return;
  WARP_SYNC();  // what is stored now comes after what the warp has stored
  ROLLED for (uint n = 0; n < ATTN_WARP_ROWS; ++n) {
    const int own_row = warp_row + (int)n;
    if ((odd >> n & 1) == 0 || own_row >= END_ROW) continue;
    ExactRow exact = {.query = queries.data + (size_t)own_row * queries.stride,
                      .keys = keys.data,
                      .values = values.data,
                      .key_stride = keys.stride,
                      .value_stride = values.stride,
                      .head_dim = HEAD_DIM,
                      .value_dim = VALUE_DIM,
                      .scale = a.scale,
                      .soft_cap = a.soft_cap};
#if POLICY
    exact.policies = policies;
#if PAGED
    exact.key_places = key_places, exact.value_places = value_places;
#endif
    exact.policy = policy_row(policies, batch, head, (uint)own_row);
    exact.first = max(exact.policy.first, first_tile);
    exact.end = min(exact.policy.end, end);
#else
    exact.first = max(max(own_row + a.band_low, 0), first_tile);
    exact.end = min(own_row + a.band_high + 1, end);
#endif
    float row_sums[EXACT_COLUMNS];
    const float2 total = exact_row(row_sums, &exact, lane);
    const Total all = TOTAL_OF(total.s0, total.s1);
    const size_t part = split * rows + (batch * a.heads + head) * a.q_len + own_row;
    UNROLL for (uint c = 0; c < EXACT_COLUMNS; ++c) {
      const uint column = lane + 32 * c;
      if (column >= VALUE_DIM) continue;
      if (a.splits > 1)
        partial[part * VALUE_DIM + column] = row_sums[c];
      else
        store_scalar(row_sums[c] * all.norm, to + (size_t)own_row * a.o_stride_row, column);
    }
    if (lane != 0) continue;
    if (a.splits > 1)
      totals[2 * part] = total.s0, totals[2 * part + 1] = total.s1;
    else if (a.write_lse)
      lse[own_row] = all.log_sum_exp;
  }
}
