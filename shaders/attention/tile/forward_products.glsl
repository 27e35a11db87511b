// SPDX-License-Identifier: Apache-2.0
// Both products of attention/tile/forward, a slice at a time, and the sums and maxima of its rows.
// The shader declares what they work on.
#ifndef TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#define TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
#include "lib/tiles/products.glsl"

// One slice of q k^T, and of p v.
TILE_ADD_DOTS(add_scores, memory, score, ITEM_ROWS, ATTN_ITEM_KEYS, ATTN_SLICE_VECTORS, ATTN_LANES_Q, ATTN_Q_STRIDE,
              ATTN_LANES_K, ATTN_K_STRIDE,
              BLOCK_K / 4u)
TILE_ADD_ROWS(add_values, tile_add_product, memory, sum, ITEM_ROWS, ATTN_ITEM_VALUES, SLICE_K, ATTN_LANES_Q,
              ATTN_P_STRIDE, ATTN_LANES_K,
              ATTN_V_STRIDE)
TILE_ADD_ROWS(add_seen_values, tile_add_seen_product, memory, sum, ITEM_ROWS, ATTN_ITEM_VALUES, SLICE_K, ATTN_LANES_Q,
              ATTN_P_STRIDE,
              ATTN_LANES_K, ATTN_V_STRIDE)

TILE_REDUCE_ROWS(reduce_by_memory, memory, statistic, ITEM_ROWS, ATTN_LANES_Q, ATTN_LANES_K, ATTN_P_STRIDE)
#if SUBGROUP
TILE_SHUFFLE_ROWS(reduce_by_shuffles, statistic, ITEM_ROWS, ATTN_LANES_K)
#endif
// By shuffles where a sub-group holds all items of a row, else by way of the memory of the weights.
void reduce_rows(bool is_sum, uint subgroup_lanes) {
#if SUBGROUP
  if (subgroup_lanes >= ATTN_LANES_K) {
    reduce_by_shuffles(is_sum);
    return;
  }
#endif
  reduce_by_memory(is_sum, LOWEST_MAXIMUM, kWeightTile, lane_q, lane_k);
}

#endif  // TESSERA_ATTENTION_TILE_FORWARD_PRODUCTS_GLSL
