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

TILE_REDUCE_ROWS(reduce_by_memory, memory, statistic, ITEM_ROWS, LANES_Q, LANES_K, P_STRIDE)
#if SUBGROUP
TILE_SHUFFLE_ROWS(reduce_by_shuffles, statistic, ITEM_ROWS, LANES_K)
#endif
// By shuffles where a sub-group holds all items of a row, else by way of the memory of the weights.
void reduce_rows(bool is_sum, uint subgroup_lanes) {
#if SUBGROUP
  if (subgroup_lanes >= LANES_K) {
    reduce_by_shuffles(is_sum);
    return;
  }
#endif
  reduce_by_memory(is_sum, LOWEST_MAXIMUM, kWeightTile, lane_q, lane_k);
}

#endif  // TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
