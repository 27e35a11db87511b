// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first, and a share of their keys; head; batch.
// Memory   k and v once per query tile, q once (KEEP_Q) or with every BLOCK_K keys.
// Numerics Float; base-2 softmax with running maximum; keys in order; one rounding to DTYPE.
// Assumes  ATTN_TILE_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie;
//          operands below 2^32 elements; with SUBGROUP=1 full sub-groups of a power-of-two size.
//
// One step takes BLOCK_K keys. ATTN_LANES_Q x ATTN_LANES_K items lie over both products in the same way, so
// the rows, with their maxima, sums and outputs, never leave their items; only the weights p cross
// lanes, through shared memory, where the slices of q, k and v are staged too (as float).
//
//                 BLOCK_K keys                                 value columns
//           +----------------------+                      +----------------------+
//  BLOCK_Q  | scores, added up by  | mask, softmax,       | output, added up by  |
//  queries  | SLICE_D features     | p to shared memory   | SLICE_K keys         |
//           +----------------------+                      +----------------------+
//  Item (lane_q, lane_k): rows lane_q + ATTN_LANES_Q r, columns 4 (lane_k + ATTN_LANES_K g) + 0..3 of both.
//
// Registers hold ITEM_ROWS x ATTN_ITEM_KEYS scores and ITEM_ROWS x 4 ATTN_ITEM_VALUES outputs, where
//   ATTN_LANES_K = WG_X ITEM_ROWS / BLOCK_Q, ATTN_ITEM_KEYS = BLOCK_K / ATTN_LANES_K,
//   ATTN_ITEM_VALUES = ceil(VALUE_DIM / (4 ATTN_LANES_K)); ATTN_TILE_REGISTERS estimates the whole.
// Shared memory is ATTN_TILE_LOCAL_BYTES = 16 (Q + max(K, P + V)) if KEEP_Q else 16 max(Q + K, P + V),
//   Q = BLOCK_Q odd(KEEP_Q ? SLICE_D / 4 ceil(HEAD_DIM / SLICE_D) : SLICE_D / 4),
//   K = BLOCK_K odd(SLICE_D / 4), P = BLOCK_Q odd(BLOCK_K / 4), V = SLICE_K ATTN_LANES_K ATTN_ITEM_VALUES,
//   odd(n) = n | 1.
// A value that is not finite reaches the rows that give its key a weight.
//
// Rows are (query row, head) pairs where `pack` heads share keys. With splits, a group takes every
// key of its share only, and leaves {sum, maximum, total} for attention/core/combine.
#version 450
#extension GL_GOOGLE_include_directive : require
#if SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "lib/prelude.glsl"
#include "operations/attention_core/tile/forward.def"
#include "operations/attention_core/tile/forward.h"
#include "attention/core/forward_call.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 0) readonly buffer QueryVectors { scalar4 q4[]; };
#if CODES
layout(std430, binding = 1) readonly buffer Keys { uint k[]; };
layout(std430, binding = 2) readonly buffer Values { uint v[]; };
#else
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { scalar4 k4[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { scalar4 v4[]; };
#endif
layout(std430, binding = 3) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 3) writeonly buffer OutputVectors { scalar4 o4[]; };
layout(std430, binding = 4) writeonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) buffer Parts { float parts[]; };
#if POLICY
layout(std430, binding = SCRATCH_BINDING) readonly buffer Map { uint map_words[]; };
#endif

shared vec4 memory[ATTN_TILE_VECTORS];
const uint kKeyTile = ATTN_Q_AREA;
const uint kWeightTile = KEEP_Q != 0u ? ATTN_Q_AREA : 0u;
const uint kValueTile = kWeightTile + ATTN_P_AREA;

uint item, lane_q, lane_k;
uint q_base, k_base, v_base;  // element 0 of this (batch, head)
// Rows from there on are never read: memory may hold NaN there, and 0 * NaN would show.
int end_row, end_key;
uint first_head, batch, kv_head;
vec4 copies[ATTN_TILE_COPIES];  // this item's share of the slice on its way
float score[ITEM_ROWS * ATTN_ITEM_KEYS];
vec4 sum[ITEM_ROWS * ATTN_ITEM_VALUES];
float row_max[ITEM_ROWS], row_sum[ITEM_ROWS];
float statistic[ITEM_ROWS];  // one number per row, for reduce_rows

#include "attention/core/key_rows.glsl"
#if PAGED || LISTED
#include "attention/core/work.glsl"
#endif
#include "attention/tile/forward_slices.glsl"
#include "attention/tile/forward_products.glsl"

// Keys [first, end) are seen by some row of the tile, [common_first, common_end) by all of them.
struct Interval {
  int first, end, common_first, common_end;
};

#if POLICY
Interval interval_of(int first_row, int last_row) {
  Interval at = Interval(INDEX_MAX, 0, 0, INDEX_MAX);
  for (int row = first_row; row <= last_row; ++row) {
    const ivec4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + uint(row));
    at.common_first = max(at.common_first, entry.x);
    at.common_end = min(at.common_end, entry.y);
#if PAGED
    if (PAGED_HIDES(entry.w)) at.common_end = 0;
#endif
    if (entry.x >= entry.y) continue;
    at.first = min(at.first, entry.x);
    at.end = max(at.end, entry.y);
  }
  return at;
}

// What the map of tiles says about the tile at key `first`.
uint tile_state(int row, int first) {
  if ((RULE(features) & POLICY_MAP) == 0u) return MAP_SOME;
  return map_words[RULE(map) + batch * RULE(map_stride_batch) +
                   first_head / RULE(mask.group) * RULE(map_stride_head) +
                   uint(row) / BLOCK_Q * RULE(map_stride_row) + uint(first) / BLOCK_K];
}

// Factors of the four keys from `key` on.
vec4 keep_of(uint head, uint row, int key) {
  const RowPolicy at = policy_row(batch, head, row);
  return vec4(policy_keep(at, key), policy_keep(at, key + 1), policy_keep(at, key + 2),
              policy_keep(at, key + 3));
}
#else
Interval interval_of(int first_row, int last_row) {
  return Interval(max(first_row + args.band_low, 0),
                  min(last_row + 1 + args.band_high, int(args.kv_len)), last_row + args.band_low,
                  min(first_row + 1 + args.band_high, int(args.kv_len)));
}
#endif

// One split's share of an interval, in whole tiles from multiples of BLOCK_K on: what a row adds up
// in which order depends on nothing but its own keys and the number of splits. Tiles of the work list begin where
// their sequence does, and so do its keys.
Interval share_of(Interval at, uint split, uint splits) {
#if !LISTED
  at.first = at.first / int(BLOCK_K) * int(BLOCK_K);
#endif
  if (splits > 1u) {
    const int tiles = (at.end - at.first + int(BLOCK_K) - 1) / int(BLOCK_K);
    const int share = (max(tiles, 0) + int(splits) - 1) / int(splits) * int(BLOCK_K);
    at.first += int(split) * share;
    at.end = min(at.end, at.first + share);
  }
  return at;
}

// {what outputs are multiplied with, log-sum-exp} of a row with this maximum and sum of weights. A row that saw nothing has
// the sum 0.
vec2 end_of_row(uint head, float maximum, float weights) {
#if POLICY
  const vec2 total = policy_sinks(head, maximum, weights);
  const float shrink = exp2(maximum - total.x);
  const float norm = (args.policy.features & POLICY_UNNORMALIZED) != 0u ? shrink : shrink / total.y;
  const float lse = policy_log_sum_exp(total.x, total.y);
#else
  const vec2 total = vec2(maximum, weights);
  const float norm = 1.0 / total.y;
  const float lse = (total.x + log2(total.y)) * LN_2;
#endif
  return total.y == 0.0 ? vec2(0.0, uintBitsToFloat(0xff800000u)) : vec2(norm, lse);
}

void main() {
  uint subgroup_lanes = 1u;
  item = gl_LocalInvocationIndex;
#if SUBGROUP
  subgroup_lanes = WG_X / gl_NumSubgroups;
  item = gl_SubgroupID * subgroup_lanes + gl_SubgroupInvocationID;
#endif
  lane_q = item / ATTN_LANES_K;
  lane_k = item % ATTN_LANES_K;
  // Under a causal mask the last tiles take longest, so they start first.
  const uint tiles = gl_NumWorkGroups.x / CALL.splits, split = gl_WorkGroupID.x / tiles;
#if PAGED
  const uint number = tiles - 1u - gl_WorkGroupID.x % tiles;
  Tile tile = Tile(number * BLOCK_Q, min((number + 1u) * BLOCK_Q, CALL.q_len * CALL.pack), gl_WorkGroupID.z, 0u);
  if ((RULE(features) & POLICY_WORK) != 0u) tile = listed_tile(RULE(map), number);
  const int first_row = int(tile.first);
  end_row = int(tile.end);
  key_sequence = tile.sequence;
#elif LISTED
  const Tile tile = listed_tile(RULE(map), tiles - 1u - gl_WorkGroupID.x % tiles);
  const int first_row = int(tile.first);
  end_row = int(tile.end);
#else
  const int first_row = int((tiles - 1u - gl_WorkGroupID.x % tiles) * BLOCK_Q);
  end_row = min(first_row + int(BLOCK_Q), int(CALL.q_len * CALL.pack));
#endif
  first_head = gl_WorkGroupID.y * CALL.pack;
  batch = gl_WorkGroupID.z;
  kv_head = first_head / CALL.group;
#if PAGED  // without rows beyond the work list
#define LAST_ROW ((end_row + int(CALL.pack) - 1) / int(CALL.pack) - 1)
#else
#define LAST_ROW ((end_row - 1) / int(CALL.pack))
#endif
#if LISTED
  const ivec4 listed = listed_keys(tile);
  const Interval all = Interval(listed.x, listed.y, listed.z, listed.w);
#else
  const Interval all = interval_of(first_row / int(CALL.pack), LAST_ROW);
#endif
  const Interval at = share_of(all, split, CALL.splits);
  end_key = at.end;

  q_base = CALL.q_offset + batch * CALL.q_stride_batch + first_head * CALL.q_stride_head;
  k_base = CALL.k_offset + KEYS_OF(batch) * CALL.k_stride_batch + kv_head * CALL.k_stride_head;
  v_base = CALL.v_offset + KEYS_OF(batch) * CALL.v_stride_batch + kv_head * CALL.v_stride_head;
#if !POLICY
  const bool capped = args.soft_cap > 0.0;
  const float inner = capped ? args.scale / args.soft_cap : args.scale * LOG2_E;
  const float outer = args.soft_cap * LOG2_E;
#endif

  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
    row_max[r] = LOWEST_MAXIMUM;
    row_sum[r] = 0.0;
  }
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_VALUES; ++i) sum[i] = vec4(0.0);

  if (KEEP_Q != 0u)
    for (uint slice = 0u; slice < ATTN_HEAD_SLICES; ++slice) {
      fetch_queries(first_row, slice);
      store_queries(slice);
    }
  if (PREFETCH != 0u) {
    fetch_keys(at.first, 0u);
    if (KEEP_Q == 0u) fetch_queries(first_row, 0u);
  }

  for (int first = at.first; first < at.end; first += int(BLOCK_K)) {
#if POLICY
    const uint state = tile_state(first_row, first);
    if (state == MAP_NOTHING) {
      if (PREFETCH != 0u) fetch_keys(first + int(BLOCK_K), 0u);
      continue;
    }
#endif
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] = 0.0;
    for (uint slice = 0u; slice < ATTN_HEAD_SLICES; ++slice) {
      if (PREFETCH == 0u) {
        fetch_keys(first, slice);
        if (KEEP_Q == 0u) fetch_queries(first_row, slice);
      }
      store_keys();
      if (KEEP_Q == 0u) store_queries(0u);
      barrier();
      if (PREFETCH != 0u) {
        if (slice + 1u < ATTN_HEAD_SLICES) {
          fetch_keys(first, slice + 1u);
          if (KEEP_Q == 0u) fetch_queries(first_row, slice + 1u);
        } else {
          fetch_values(first, 0u);
        }
      }
      add_scores(lane_q * ATTN_Q_STRIDE + (KEEP_Q != 0u ? slice * ATTN_SLICE_VECTORS : 0u),
                 kKeyTile + lane_k * ATTN_K_STRIDE);
      barrier();
    }

    const bool all_visible = first >= at.common_first && first + int(BLOCK_K) <= at.common_end;
#if POLICY
    const uint features = args.policy.features;
    // A bias hides where it is -infinity.
    const bool every = all_visible && (features & POLICY_BIAS) == 0u &&
                       ((features & POLICY_HIDES) == 0u || state == MAP_ALL);
    const bool plain = every && (features & POLICY_ADDS) == 0u && CALL.soft_cap == 0.0;
    if (plain) {
      [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] *= CALL.scale * LOG2_E;
    } else {
      [[dont_unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
        const uint row = uint(first_row) + lane_q + ATTN_LANES_Q * r;
        if (int(row) >= end_row) continue;
        const RowPolicy policy = policy_row(batch, first_head + row % CALL.pack, row / CALL.pack);
        [[dont_unroll]] for (uint c = 0u; c < ATTN_ITEM_KEYS; ++c) {
          const int key = first + int((lane_k + c / 4u * ATTN_LANES_K) * 4u + c % 4u);
          const uint i = r * ATTN_ITEM_KEYS + c;
          score[i] = policy_sees(policy, key) ? policy_score(policy, key, score[i] * CALL.scale).x
                                              : MASKED_SCORE;
        }
      }
    }
#else
    const bool every = all_visible;
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] *= inner;
    if (capped) {
      [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_KEYS; ++i) score[i] =
          outer * saturating_tanh(score[i]);
    }
    if (!all_visible) {
      const int key = first + int(lane_k * 4u);
      [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
        const int row = (first_row + int(lane_q + ATTN_LANES_Q * r)) / int(args.pack);
        [[unroll]] for (uint c = 0u; c < ATTN_ITEM_KEYS; ++c) {
          const int step = int(c / 4u * ATTN_LANES_K * 4u + c % 4u), away = key + step - row;
          const bool visible =
              away >= args.band_low && away <= args.band_high && key + step < int(args.kv_len);
          if (!visible) score[r * ATTN_ITEM_KEYS + c] = MASKED_SCORE;
        }
      }
    }
#endif

    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      statistic[r] = row_max[r];
      [[unroll]] for (uint c = 0u; c < ATTN_ITEM_KEYS; ++c) statistic[r] =
          max(statistic[r], score[r * ATTN_ITEM_KEYS + c]);
    }
    reduce_rows(false, subgroup_lanes);
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const float rescale = exp2(row_max[r] - statistic[r]);
      row_max[r] = statistic[r];
      row_sum[r] *= rescale;
      [[unroll]] for (uint i = 0u; i < ATTN_ITEM_VALUES; ++i) sum[r * ATTN_ITEM_VALUES + i] *= rescale;
      [[unroll]] for (uint g = 0u; g < ATTN_ITEM_KEYS / 4u; ++g) {
        const uint c = r * ATTN_ITEM_KEYS + g * 4u;
        vec4 weight =
            exp2(vec4(score[c], score[c + 1u], score[c + 2u], score[c + 3u]) - row_max[r]);
        row_sum[r] += (weight.x + weight.y) + (weight.z + weight.w);
#if POLICY
        const uint row = uint(first_row) + lane_q + ATTN_LANES_Q * r;
        if ((features & POLICY_DROPOUT) != 0u && int(row) < end_row)
          weight *= keep_of(first_head + row % CALL.pack, row / CALL.pack,
                            first + int((lane_k + ATTN_LANES_K * g) * 4u));
#endif
        memory[kWeightTile + (lane_q + ATTN_LANES_Q * r) * ATTN_P_STRIDE + lane_k + ATTN_LANES_K * g] = weight;
      }
    }

    // Slices that start behind the last visible key would add zeros.
    const uint slices = min((uint(end_key - first) + SLICE_K - 1u) / SLICE_K, BLOCK_K / SLICE_K);
    for (uint slice = 0u; slice < slices; ++slice) {
      if (PREFETCH == 0u) fetch_values(first, slice);
      store_values();
      barrier();
      if (PREFETCH != 0u) {
        if (slice + 1u < slices) {
          fetch_values(first, slice + 1u);
        } else {
          fetch_keys(first + int(BLOCK_K), 0u);
          if (KEEP_Q == 0u) fetch_queries(first_row, 0u);
        }
      }
      const uint weights = kWeightTile + lane_q * ATTN_P_STRIDE + slice * (SLICE_K / 4u);
      if (every) {
        add_values(weights, kValueTile + lane_k);
      } else {
        add_seen_values(weights, kValueTile + lane_k);
      }
      barrier();
    }
  }

  // A row that saw nothing has row_sum 0; a NaN in row_sum must show in both results.
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) statistic[r] = row_sum[r];
  reduce_rows(true, subgroup_lanes);
#if POLICY
  // Sinks are a loop, around which Mesa's compilers unroll no other, and outputs that a loop counts through lie in memory.
  // So an item for each row goes through them first.
  barrier();
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) if (lane_k == 0u)
      memory[lane_q + ATTN_LANES_Q * r].xy = vec2(row_max[r], statistic[r]);
  barrier();
  for (uint row = item; row < BLOCK_Q && first_row + int(row) < end_row; row += WG_X) {
    const uint head = first_head + (uint(first_row) + row) % CALL.pack;
    memory[row].xy = end_of_row(head, memory[row].x, memory[row].y);
  }
  barrier();
#endif
  const uint rows = gl_NumWorkGroups.z * CALL.heads * CALL.q_len;
  const uint totals = CALL.partials + CALL.splits * rows * VALUE_DIM;
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
    const int packed_row = first_row + int(lane_q + ATTN_LANES_Q * r);
    if (packed_row >= end_row) continue;
    const uint row = uint(packed_row) / CALL.pack, head = first_head + uint(packed_row) % CALL.pack;
    if (CALL.splits > 1u) {
      const uint part = split * rows + (batch * CALL.heads + head) * CALL.q_len + row;
      [[unroll]] for (uint i = 0u; i < ATTN_ITEM_VALUES; ++i) {
        [[unroll]] for (uint f = 0u; f < 4u; ++f) {
          const uint column = (lane_k + ATTN_LANES_K * i) * 4u + f;
          if (column < VALUE_DIM)
            parts[CALL.partials + part * VALUE_DIM + column] = sum[r * ATTN_ITEM_VALUES + i][f];
        }
      }
      if (lane_k == 0u) {
        parts[totals + 2u * part] = row_max[r];
        parts[totals + 2u * part + 1u] = statistic[r];
      }
      continue;
    }
#if POLICY
    const vec2 end = memory[lane_q + ATTN_LANES_Q * r].xy;
#else
    const vec2 end = end_of_row(first_head, row_max[r], statistic[r]);
#endif
    const uint to = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head +
                    row * CALL.o_stride_row;
    [[unroll]] for (uint i = 0u; i < ATTN_ITEM_VALUES; ++i) {
      const uint column = (lane_k + ATTN_LANES_K * i) * 4u;
      const vec4 result = sum[r * ATTN_ITEM_VALUES + i] * end.x;
      if (ALIGNED != 0u) {
        if (column < VALUE_DIM) o4[(to + column) / 4u] = store_scalar4(result);
      } else {
        [[unroll]] for (uint f = 0u; f < 4u; ++f) if (column + f < VALUE_DIM) o[to + column + f] =
            store_scalar(result[f]);
      }
    }
    if (CALL.write_lse != 0u && lane_k == 0u)
      log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head +
                  row] = end.y;
  }
}
