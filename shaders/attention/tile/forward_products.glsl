// SPDX-License-Identifier: Apache-2.0
// Both products of attention/tile/forward, a slice at a time, and the sums and maxima of its rows.
// The shader declares what they work on.
#ifndef TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#define TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#include "attention/tile/features.glsl"

// One slice of q k^T: 4 ITEM_ROWS ITEM_KEYS multiply-adds for ITEM_ROWS + ITEM_KEYS reads.
void add_scores(uint query, uint key) {
  for (uint d = 0u; d < SLICE_VECTORS; ++d) {
    vec4 key_part[ITEM_KEYS];
    [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c) key_part[c] =
        memory[key + (c % 4u * (BLOCK_K / 4u) + c / 4u * LANES_K) * K_STRIDE + d];
    [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const vec4 query_part = memory[query + LANES_Q * r * Q_STRIDE + d];
      [[unroll]] for (uint c = 0u; c < ITEM_KEYS; ++c) score[r * ITEM_KEYS + c] =
          dot_add(query_part, key_part[c], score[r * ITEM_KEYS + c]);
    }
  }
}

// name(weight, value): one slice of p v, 16 ITEM_ROWS ITEM_VALUES multiply-adds for ITEM_ROWS +
// 4 ITEM_VALUES reads.
#define ADD_VALUES(name, add)                                                    \
  void name(uint weight, uint value) {                                           \
    for (uint j = 0u; j < SLICE_K / 4u; ++j, value += 4u * V_STRIDE) {           \
      vec4 part[ITEM_ROWS];                                                      \
      [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r)                           \
        part[r] = memory[weight + LANES_Q * r * P_STRIDE + j];                   \
      [[unroll]] for (uint i = 0u; i < ITEM_VALUES; ++i) {                       \
        const vec4 value0 = memory[value + LANES_K * i];                         \
        const vec4 value1 = memory[value + LANES_K * i + V_STRIDE];              \
        const vec4 value2 = memory[value + LANES_K * i + 2u * V_STRIDE];         \
        const vec4 value3 = memory[value + LANES_K * i + 3u * V_STRIDE];         \
        [[unroll]] for (uint r = 0u; r < ITEM_ROWS; ++r) {                       \
          vec4 total = sum[r * ITEM_VALUES + i];                                 \
          total = add(total, part[r].x, value0);                                 \
          total = add(total, part[r].y, value1);                                 \
          total = add(total, part[r].z, value2);                                 \
          sum[r * ITEM_VALUES + i] = add(total, part[r].w, value3);              \
        }                                                                        \
      }                                                                          \
    }                                                                            \
  }
ADD_VALUES(add_values, add_product)
ADD_VALUES(add_seen_values, add_seen_product)

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

#endif  // TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
