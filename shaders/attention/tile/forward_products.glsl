// SPDX-License-Identifier: Apache-2.0
// Both products of attention/tile/forward, a slice at a time, and the sums and maxima of its rows.
// The shader declares what they work on.
#ifndef TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#define TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#include "lib/tiles/products.glsl"

// One slice of q k^T, and of p v.
TILE_ADD_DOTS(add_scores, memory, score, ITEM_ROWS, ITEM_KEYS, SLICE_VECTORS, LANES_Q, Q_STRIDE, LANES_K, K_STRIDE,
              BLOCK_K / 4u)
TILE_ADD_ROWS(add_values, add_product, memory, sum, ITEM_ROWS, ITEM_VALUES, SLICE_K, LANES_Q, P_STRIDE, LANES_K,
              V_STRIDE)
TILE_ADD_ROWS(add_seen_values, add_seen_product, memory, sum, ITEM_ROWS, ITEM_VALUES, SLICE_K, LANES_Q, P_STRIDE,
              LANES_K, V_STRIDE)

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
