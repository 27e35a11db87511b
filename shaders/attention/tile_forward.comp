// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Group (x, y, z): BLOCK_Q rows, the last first; head; batch. Items as drawn below.
// Memory   k and v once per query tile, q once (KEEP_Q) or with every BLOCK_K keys.
// Numerics Float; base-2 softmax with running maximum; keys in order; one rounding to DTYPE.
// Assumes  TILE_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie;
//          operands below 2^32 elements; with SUBGROUP=1 full sub-groups of a power-of-two size.
//
// One step takes BLOCK_K keys. LANES_Q x LANES_K items lie over both products in the same way, so
// the rows, with their maxima, sums and outputs, never leave their items; only the weights p cross
// lanes, through shared memory, where the slices of q, k and v are staged too (as float).
//
//                 BLOCK_K keys                                 value columns
//           +----------------------+                      +----------------------+
//  BLOCK_Q  | scores, added up by  | mask, softmax,       | output, added up by  |
//  queries  | SLICE_D features     | p to shared memory   | SLICE_K keys         |
//           +----------------------+                      +----------------------+
//  Item (lane_q, lane_k): rows lane_q + LANES_Q r, columns 4 (lane_k + LANES_K g) + 0..3 of both.
//
// Registers hold ITEM_ROWS x ITEM_KEYS scores and ITEM_ROWS x 4 ITEM_VALUES outputs, where
//   LANES_K = WG_X ITEM_ROWS / BLOCK_Q, ITEM_KEYS = BLOCK_K / LANES_K,
//   ITEM_VALUES = ceil(VALUE_DIM / (4 LANES_K)); TILE_REGISTERS estimates the whole.
// Shared memory is TILE_LOCAL_BYTES = 16 (Q + max(K, P + V)) if KEEP_Q else 16 max(Q + K, P + V),
//   Q = BLOCK_Q odd(KEEP_Q ? SLICE_D / 4 ceil(HEAD_DIM / SLICE_D) : SLICE_D / 4),
//   K = BLOCK_K odd(SLICE_D / 4), P = BLOCK_Q odd(BLOCK_K / 4), V = SLICE_K LANES_K ITEM_VALUES,
//   odd(n) = n | 1.
// A value that is not finite reaches all rows of a group if one of them sees its key, else none.
#version 450
#extension GL_GOOGLE_include_directive : require
#if SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "lib/prelude.glsl"
#include "operations/flash_attention/args.h"
#include "operations/flash_attention/score.h"
#include "operations/flash_attention/tile.def"
#include "operations/flash_attention/tile.h"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
layout(std430, binding = 0) readonly buffer QueryVectors { scalar4 q4[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 1) readonly buffer KeyVectors { scalar4 k4[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 2) readonly buffer ValueVectors { scalar4 v4[]; };
layout(std430, binding = 3) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 3) writeonly buffer OutputVectors { scalar4 o4[]; };
layout(std430, binding = 4) writeonly buffer LogSumExp { float log_sum_exp[]; };
PUSH_ARGS(FlashAttentionArgs);

shared vec4 memory[TILE_VECTORS];
const uint kKeyTile = Q_AREA;
const uint kWeightTile = KEEP_Q != 0u ? Q_AREA : 0u;
const uint kValueTile = kWeightTile + P_AREA;

uint item, lane_q, lane_k;
uint q_base, k_base, v_base;  // element 0 of this (batch, head)
// Rows from there on are never read: memory may hold NaN there, and 0 * NaN would show.
int end_row, end_key;
vec4 copies[TILE_COPIES];  // this item's share of the slice on its way
float score[ITEM_ROWS * ITEM_KEYS];
vec4 sum[ITEM_ROWS * ITEM_VALUES];
float row_max[ITEM_ROWS], row_sum[ITEM_ROWS];
float statistic[ITEM_ROWS];  // one number per row, for reduce_rows

// Four features of a row; zero where there is none.
#define LOAD_FEATURES(name, elements, vectors)                                     \
  vec4 name(uint at, uint feature, uint features) {                                \
    vec4 x = vec4(0.0);                                                            \
    if (ALIGNED != 0u) {                                                           \
      if (feature < features) x = load_scalar4(vectors[(at + feature) / 4u]);      \
    } else {                                                                       \
      if (feature + 0u < features) x.x = load_scalar(elements[at + feature + 0u]); \
      if (feature + 1u < features) x.y = load_scalar(elements[at + feature + 1u]); \
      if (feature + 2u < features) x.z = load_scalar(elements[at + feature + 2u]); \
      if (feature + 3u < features) x.w = load_scalar(elements[at + feature + 3u]); \
    }                                                                              \
    return x;                                                                      \
  }
LOAD_FEATURES(load_query, q, q4)
LOAD_FEATURES(load_key, k, k4)
LOAD_FEATURES(load_value, v, v4)

// fetch_x: this item's share of a slice, to registers. store_x: from there to the tile.
void fetch_queries(int first_row, uint slice) {
  const uint feature = slice * SLICE_D + item % SLICE_VECTORS * 4u;
  [[unroll]] for (uint n = 0u; n < Q_COPIES; ++n) {
    const int row = first_row + int(item / SLICE_VECTORS + n * COPY_ROWS);
    copies[K_COPIES + n] =
        row < end_row ? load_query(q_base + uint(row) * args.q_stride_row, feature, HEAD_DIM)
                      : vec4(0.0);
  }
}

void fetch_keys(int first, uint slice) {
  const uint feature = slice * SLICE_D + item % SLICE_VECTORS * 4u;
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const int key = first + int(item / SLICE_VECTORS + n * COPY_ROWS);
    copies[n] = key < end_key ? load_key(k_base + uint(key) * args.k_stride_row, feature, HEAD_DIM)
                              : vec4(0.0);
  }
}

void fetch_values(int first, uint slice) {
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const int key = first + int(slice * SLICE_K + lane_q + n / ITEM_VALUES * LANES_Q);
    const uint column = (lane_k + n % ITEM_VALUES * LANES_K) * 4u;
    copies[n] = key < end_key
                    ? load_value(v_base + uint(key) * args.v_stride_row, column, VALUE_DIM)
                    : vec4(0.0);
  }
}

void store_queries(uint slice) {
  [[unroll]] for (uint n = 0u; n < Q_COPIES; ++n) {
    const uint row = item / SLICE_VECTORS + n * COPY_ROWS;
    if (row < BLOCK_Q)
      memory[row * Q_STRIDE + slice * SLICE_VECTORS + item % SLICE_VECTORS] = copies[K_COPIES + n];
  }
}

// Keys 4 i to 4 i + 3 are score columns of one item. They go to rows i, i + BLOCK_K / 4, ... of the
// tile: so the lanes, each of which reads one such row at a time, read neighbouring rows.
void store_keys() {
  [[unroll]] for (uint n = 0u; n < K_COPIES; ++n) {
    const uint key = item / SLICE_VECTORS + n * COPY_ROWS;
    const uint slot = key % 4u * (BLOCK_K / 4u) + key / 4u;
    if (key < BLOCK_K) memory[kKeyTile + slot * K_STRIDE + item % SLICE_VECTORS] = copies[n];
  }
}

void store_values() {
  [[unroll]] for (uint n = 0u; n < V_COPIES; ++n) {
    const uint key = lane_q + n / ITEM_VALUES * LANES_Q;
    if (key < SLICE_K)
      memory[kValueTile + key * V_STRIDE + lane_k + n % ITEM_VALUES * LANES_K] = copies[n];
  }
}

float dot_add(vec4 a, vec4 b, float sum) {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

// One slice of q k^T: 4 ITEM_ROWS ITEM_KEYS multiply-adds for ITEM_ROWS + ITEM_KEYS reads.
void add_scores(uint query, uint key) {
  for (uint d = 0u; d < SLICE_VECTORS; ++d) {
    vec4 key_part[ITEM_KEYS];
    [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c)
      key_part[c] = memory[key + (c % 4u * (BLOCK_K / 4u) + c / 4u * LANES_K) * K_STRIDE + d];
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const vec4 query_part = memory[query + LANES_Q * r * Q_STRIDE + d];
      [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c)
        score[r * ITEM_KEYS + c] = dot_add(query_part, key_part[c], score[r * ITEM_KEYS + c]);
    }
  }
}

// One slice of p v: 16 ITEM_ROWS ITEM_VALUES multiply-adds for ITEM_ROWS + 4 ITEM_VALUES reads.
void add_values(uint weight, uint value) {
  for (uint j = 0u; j < SLICE_K / 4u; ++j, value += 4u * V_STRIDE) {
    vec4 part[ITEM_ROWS];
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r)
      part[r] = memory[weight + LANES_Q * r * P_STRIDE + j];
    [[unroll]] for (uint i = 0u; i < ITEM_VALUES; ++i) {
      const vec4 value0 = memory[value + LANES_K * i];
      const vec4 value1 = memory[value + LANES_K * i + V_STRIDE];
      const vec4 value2 = memory[value + LANES_K * i + 2u * V_STRIDE];
      const vec4 value3 = memory[value + LANES_K * i + 3u * V_STRIDE];
      [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
        vec4 total = sum[r * ITEM_VALUES + i];
        total = fma(vec4(part[r].x), value0, total);
        total = fma(vec4(part[r].y), value1, total);
        total = fma(vec4(part[r].z), value2, total);
        sum[r * ITEM_VALUES + i] = fma(vec4(part[r].w), value3, total);
      }
    }
  }
}

// Maximum or sum of each row's statistic over the LANES_K items that share the row: by shuffles
// where a sub-group holds them all, else by way of the memory of the weights.
void reduce_rows(bool is_sum, uint subgroup_lanes) {
#if SUBGROUP
  if (subgroup_lanes >= LANES_K) {
    [[unroll]] for (uint lanes = 1u; lanes < LANES_K; lanes *= 2u) {
      [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
        const float other = subgroupShuffleXor(statistic[r], lanes);
        statistic[r] = is_sum ? statistic[r] + other : max(statistic[r], other);
      }
    }
    return;
  }
#endif
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r)
    memory[kWeightTile + (lane_q + LANES_Q * r) * P_STRIDE + lane_k / 4u][lane_k % 4u] =
        statistic[r];
  barrier();
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) statistic[r] = is_sum ? 0.0 : LOWEST_MAXIMUM;
  // Unrolled, this would hold all of it in registers at once.
  [[dont_unroll]] for (uint i = 0u; i < LANES_K / 4u; ++i) {
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const vec4 x = memory[kWeightTile + (lane_q + LANES_Q * r) * P_STRIDE + i];
      statistic[r] = is_sum ? statistic[r] + ((x.x + x.y) + (x.z + x.w))
                            : max(statistic[r], max(max(x.x, x.y), max(x.z, x.w)));
    }
  }
  barrier();
}

void main() {
  uint subgroup_lanes = 1u;
  item = gl_LocalInvocationIndex;
#if SUBGROUP
  subgroup_lanes = WG_X / gl_NumSubgroups;
  item = gl_SubgroupID * subgroup_lanes + gl_SubgroupInvocationID;
#endif
  lane_q = item / LANES_K;
  lane_k = item % LANES_K;
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = int((gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) * BLOCK_Q);
  const uint head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z, kv_head = head / args.group;

  // Keys [first_key, end_key) are seen by some row of the tile, [first_common, end_common) by all.
  end_row = min(first_row + int(BLOCK_Q), int(args.q_len));
  const int first_key = max(first_row + args.band_low, 0);
  const int first_common = end_row - 1 + args.band_low;
  end_key = min(end_row + args.band_high, int(args.kv_len));
  const int end_common = min(first_row + 1 + args.band_high, int(args.kv_len));

  q_base = args.q_offset + batch * args.q_stride_batch + head * args.q_stride_head;
  k_base = args.k_offset + batch * args.k_stride_batch + kv_head * args.k_stride_head;
  v_base = args.v_offset + batch * args.v_stride_batch + kv_head * args.v_stride_head;
  const bool capped = args.soft_cap > 0.0;
  const float inner = capped ? args.scale / args.soft_cap : args.scale * LOG2_E;
  const float outer = args.soft_cap * LOG2_E;

  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
    row_max[r] = LOWEST_MAXIMUM;
    row_sum[r] = 0.0;
  }
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ITEM_VALUES; ++i) sum[i] = vec4(0.0);

  if (KEEP_Q != 0u)
    for (uint slice = 0u; slice < HEAD_SLICES; ++slice) {
      fetch_queries(first_row, slice);
      store_queries(slice);
    }
  if (PREFETCH != 0u) {
    fetch_keys(first_key, 0u);
    if (KEEP_Q == 0u) fetch_queries(first_row, 0u);
  }

  for (int first = first_key; first < end_key; first += int(BLOCK_K)) {
    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ITEM_KEYS; ++i) score[i] = 0.0;
    for (uint slice = 0u; slice < HEAD_SLICES; ++slice) {
      if (PREFETCH == 0u) {
        fetch_keys(first, slice);
        if (KEEP_Q == 0u) fetch_queries(first_row, slice);
      }
      store_keys();
      if (KEEP_Q == 0u) store_queries(0u);
      barrier();
      if (PREFETCH != 0u) {
        if (slice + 1u < HEAD_SLICES) {
          fetch_keys(first, slice + 1u);
          if (KEEP_Q == 0u) fetch_queries(first_row, slice + 1u);
        } else {
          fetch_values(first, 0u);
        }
      }
      add_scores(lane_q * Q_STRIDE + (KEEP_Q != 0u ? slice * SLICE_VECTORS : 0u),
                 kKeyTile + lane_k * K_STRIDE);
      barrier();
    }

    [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ITEM_KEYS; ++i) score[i] *= inner;
    if (capped) {
      [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ITEM_KEYS; ++i)
        score[i] = outer * saturating_tanh(score[i]);
    }
    if (first < first_common || first + int(BLOCK_K) > end_common) {
      const int key = first + int(lane_k * 4u), distance = key - first_row - int(lane_q);
      [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
        [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c) {
          const int step = int(c / 4u * LANES_K * 4u + c % 4u);
          const int away = distance + step - int(LANES_Q * r);
          const bool visible =
              away >= args.band_low && away <= args.band_high && key + step < int(args.kv_len);
          if (!visible) score[r * ITEM_KEYS + c] = MASKED_SCORE;
        }
      }
    }

    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      statistic[r] = row_max[r];
      [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c)
        statistic[r] = max(statistic[r], score[r * ITEM_KEYS + c]);
    }
    reduce_rows(false, subgroup_lanes);
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const float rescale = exp2(row_max[r] - statistic[r]);
      row_max[r] = statistic[r];
      row_sum[r] *= rescale;
      [[unroll]] for (uint i = 0u; i < ITEM_VALUES; ++i) sum[r * ITEM_VALUES + i] *= rescale;
      [[unroll]] for (uint g = 0u; g < ITEM_KEYS / 4u; ++g) {
        const uint c = r * ITEM_KEYS + g * 4u;
        const vec4 weight =
            exp2(vec4(score[c], score[c + 1u], score[c + 2u], score[c + 3u]) - row_max[r]);
        row_sum[r] += (weight.x + weight.y) + (weight.z + weight.w);
        memory[kWeightTile + (lane_q + LANES_Q * r) * P_STRIDE + lane_k + LANES_K * g] = weight;
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
      add_values(kWeightTile + lane_q * P_STRIDE + slice * (SLICE_K / 4u), kValueTile + lane_k);
      barrier();
    }
  }

  // A row that saw nothing has row_sum 0; a NaN in row_sum must show in both results.
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) statistic[r] = row_sum[r];
  reduce_rows(true, subgroup_lanes);
  const uint o_base = args.o_offset + batch * args.o_stride_batch + head * args.o_stride_head;
  const uint lse_base =
      args.lse_offset + batch * args.lse_stride_batch + head * args.lse_stride_head;
  [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
    const int row = first_row + int(lane_q + LANES_Q * r);
    if (row >= end_row) continue;
    const float norm = statistic[r] == 0.0 ? 0.0 : 1.0 / statistic[r];
    const uint to = o_base + uint(row) * args.o_stride_row;
    [[unroll]] for (uint i = 0u; i < ITEM_VALUES; ++i) {
      const uint column = (lane_k + LANES_K * i) * 4u;
      const vec4 result = sum[r * ITEM_VALUES + i] * norm;
      if (ALIGNED != 0u) {
        if (column < VALUE_DIM) o4[(to + column) / 4u] = store_scalar4(result);
      } else {
        [[unroll]] for (uint f = 0u; f < 4u; ++f)
          if (column + f < VALUE_DIM) o[to + column + f] = store_scalar(result[f]);
      }
    }
    if (args.write_lse != 0u && lane_k == 0u)
      log_sum_exp[lse_base + uint(row)] = statistic[r] == 0.0
                                              ? uintBitsToFloat(0xff800000u)
                                              : (row_max[r] + log2(statistic[r])) * LN_2;
  }
}
