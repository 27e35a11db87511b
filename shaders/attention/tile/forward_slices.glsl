// SPDX-License-Identifier: Apache-2.0
// How slices of q, k and v come to the shared memory of attention/tile/forward, which declares all of
// it: each item reads its share to registers, and writes it from there to the tile, as float.
#ifndef TESSERA_ATTENTION_TILE_FORWARD_SLICES_GLSL
#define TESSERA_ATTENTION_TILE_FORWARD_SLICES_GLSL
#include "lib/tiles/features.glsl"

// Four features of a row; zero where there is none.
#define LOAD_FEATURES(name, elements, vectors)             \
  vec4 name(uint at, uint feature, uint features) {        \
    vec4 x = vec4(0.0);                                    \
    TILE_LOAD_FOUR(x, elements, vectors, at, feature, features) \
    return x;                                              \
  }
LOAD_FEATURES(load_query, q, q4)
#if CODES
LOAD_CODES(load_key, k)
LOAD_CODES(load_value, v)
#define SCALED(x, buffer, scales, key) ((x) * SCALE_AT(buffer, args.scales, key))
#else
LOAD_FEATURES(load_key, k, k4)
LOAD_FEATURES(load_value, v, v4)
#define SCALED(x, buffer, scales, key) (x)
#endif

// Element 0 of a row of the tile's packed heads.
uint query_start(uint row) {
  return CALL.pack == 1u
             ? q_base + row * CALL.q_stride_row
             : q_base + row / CALL.pack * CALL.q_stride_row + row % CALL.pack * CALL.q_stride_head;
}

// fetch_x: this item's share of a slice, to registers. store_x: from there to the tile.
void fetch_queries(int first_row, uint slice) {
  const uint feature = slice * SLICE_D + item % ATTN_SLICE_VECTORS * 4u;
  [[unroll]] for (uint n = 0u; n < ATTN_Q_COPIES; ++n) {
    const int row = first_row + int(item / ATTN_SLICE_VECTORS + n * ATTN_COPY_ROWS);
    copies[ATTN_K_COPIES + n] =
        row < end_row ? load_query(query_start(uint(row)), feature, HEAD_DIM) : vec4(0.0);
  }
}

void fetch_keys(int first, uint slice) {
  const uint feature = slice * SLICE_D + item % ATTN_SLICE_VECTORS * 4u;
  [[unroll]] for (uint n = 0u; n < ATTN_K_COPIES; ++n) {
    const int key = first + int(item / ATTN_SLICE_VECTORS + n * ATTN_COPY_ROWS);
    copies[n] = key < end_key ? SCALED(load_key(k_base + key_at(uint(key), CALL.k_stride_row, CALL.k_stride_batch),
                                                feature, HEAD_DIM),
                                       key_scale, key_scales, uint(key))
                              : vec4(0.0);
  }
}

void fetch_values(int first, uint slice) {
  [[unroll]] for (uint n = 0u; n < ATTN_V_COPIES; ++n) {
    const int key = first + int(slice * SLICE_K + lane_q + n / ATTN_ITEM_VALUES * ATTN_LANES_Q);
    const uint column = (lane_k + n % ATTN_ITEM_VALUES * ATTN_LANES_K) * 4u;
    copies[n] = key < end_key
                    ? SCALED(load_value(v_base + key_at(uint(key), CALL.v_stride_row, CALL.v_stride_batch), column,
                                        VALUE_DIM),
                             value_scale, value_scales, uint(key))
                    : vec4(0.0);
  }
}

void store_queries(uint slice) {
  [[unroll]] for (uint n = 0u; n < ATTN_Q_COPIES; ++n) {
    const uint row = item / ATTN_SLICE_VECTORS + n * ATTN_COPY_ROWS;
    if (row < BLOCK_Q)
      memory[row * ATTN_Q_STRIDE + slice * ATTN_SLICE_VECTORS + item % ATTN_SLICE_VECTORS] = copies[ATTN_K_COPIES + n];
  }
}

// Keys 4 i to 4 i + 3 are score columns of one item. They go to rows i, i + BLOCK_K / 4, ... of the
// tile: so the lanes, each of which reads one such row at a time, read neighbouring rows.
void store_keys() {
  [[unroll]] for (uint n = 0u; n < ATTN_K_COPIES; ++n) {
    const uint key = item / ATTN_SLICE_VECTORS + n * ATTN_COPY_ROWS;
    const uint slot = key % 4u * (BLOCK_K / 4u) + key / 4u;
    if (key < BLOCK_K) memory[kKeyTile + slot * ATTN_K_STRIDE + item % ATTN_SLICE_VECTORS] = copies[n];
  }
}

void store_values() {
  [[unroll]] for (uint n = 0u; n < ATTN_V_COPIES; ++n) {
    const uint key = lane_q + n / ATTN_ITEM_VALUES * ATTN_LANES_Q;
    if (key < SLICE_K)
      memory[kValueTile + key * ATTN_V_STRIDE + lane_k + n % ATTN_ITEM_VALUES * ATTN_LANES_K] = copies[n];
  }
}

#endif  // TESSERA_ATTENTION_TILE_FORWARD_SLICES_GLSL
