// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/backward: matrices, their products, and how the group's own rows and the sums pass
// between matrices and buffers.
#ifndef TESSERA_ATTENTION_COOPERATIVE_BACKWARD_PRODUCTS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_BACKWARD_PRODUCTS_GLSL
#include "attention/cooperative/backward_tiles.glsl"

#define PAIR_MATRICES (ATTN_BACK_ROW_TILES * ATTN_BACK_PAIR_TILES)
COOPERATIVE_LEFT own_heads[ATTN_BACK_ROW_TILES * ATTN_BACK_HEAD_STEPS];  // where the group's rows are held
COOPERATIVE_LEFT own_values[ATTN_BACK_ROW_TILES * ATTN_BACK_VALUE_STEPS];
COOPERATIVE_SUM score[PAIR_MATRICES], gradient[PAIR_MATRICES];  // q.k and do.v, then weights and du
COOPERATIVE_SUM head_sum[ATTN_BACK_ROW_TILES * ATTN_BACK_HEAD_TILES];
#if OWN_KEYS
COOPERATIVE_SUM value_sum[ATTN_BACK_ROW_TILES * ATTN_BACK_VALUE_TILES];
#endif

COOPERATIVE_TAKE_PRODUCTS(take_held_heads, memory, own_heads, score, ATTN_BACK_ROW_TILES, ATTN_BACK_PAIR_TILES,
                          ATTN_BACK_HEAD_STEPS, ATTN_BACK_HEAD_STRIDE)
COOPERATIVE_TAKE_PRODUCTS(take_held_values, memory, own_values, gradient, ATTN_BACK_ROW_TILES, ATTN_BACK_PAIR_TILES,
                          ATTN_BACK_VALUE_STEPS, ATTN_BACK_VALUE_STRIDE)
COOPERATIVE_ADD_TILES(add_head_tiles, memory, score, ATTN_BACK_ROW_TILES, ATTN_BACK_PAIR_TILES, ATTN_BACK_HEAD_STEPS, 1u,
                      ATTN_BACK_HEAD_STRIDE, 1u, ATTN_BACK_HEAD_STRIDE)
COOPERATIVE_ADD_TILES(add_value_tiles, memory, gradient, ATTN_BACK_ROW_TILES, ATTN_BACK_PAIR_TILES,
                      ATTN_BACK_VALUE_STEPS, 1u, ATTN_BACK_VALUE_STRIDE, 1u, ATTN_BACK_VALUE_STRIDE)

void take_products(uint stage) {
  if (HELD != 0u) {
    take_held_heads(heads_at(stage));
    take_held_values(values_at(stage));
  } else {
    [[unroll]] for (uint i = 0u; i < PAIR_MATRICES; ++i) score[i] = gradient[i] = COOPERATIVE_SUM(0.0);
    add_head_tiles(0u, gl_SubgroupID * ROWS, heads_at(stage), 0u);
    add_value_tiles(ATTN_BACK_OWN * ATTN_BACK_HEAD_STRIDE, gl_SubgroupID * ROWS, values_at(stage), 0u);
  }
}

// Of row tile r and tile j of a step, as factors.
COOPERATIVE_LEFT weights(uint r, uint j);
COOPERATIVE_LEFT logit_gradients(uint r, uint j);
COOPERATIVE_ADD_PRODUCTS(add_heads, memory, logit_gradients, head_sum, ATTN_BACK_ROW_TILES, ATTN_BACK_HEAD_TILES,
                         ATTN_BACK_PAIR_STEPS, ATTN_BACK_HEAD_STRIDE)
#if OWN_KEYS
COOPERATIVE_ADD_PRODUCTS(add_values, memory, weights, value_sum, ATTN_BACK_ROW_TILES, ATTN_BACK_VALUE_TILES,
                         ATTN_BACK_PAIR_STEPS, ATTN_BACK_VALUE_STRIDE)
#endif

void add_rows(uint stage) {
#if OWN_KEYS
  add_values(values_at(stage));
#endif
  add_heads(heads_at(stage));
}

// hold: the sub-group's rows to matrices, as many features at a time as its place holds. keep: the group's to memory.
#define LOAD_OWN(hold, keep, matrices, load, STEPS, VECTORS, STRIDE, features)                                 \
  void hold(uint base, uint stride) {                                                                          \
    const uint steps = 8u * ATTN_BACK_PLACE_VECTORS / MATRIX_K;                                                \
    [[unroll]] for (uint d = 0u; d < STEPS; ++d) {                                                             \
      if (d % steps == 0u) {                                                                                   \
        subgroupBarrier();                                                                                     \
        for (uint at = lane; at < ROWS * ATTN_BACK_PLACE_VECTORS; at += LANES) {                               \
          const uint line = at / ATTN_BACK_PLACE_VECTORS, vector = at % ATTN_BACK_PLACE_VECTORS;               \
          const int row = own_row + int(line);                                                                 \
          uvec4 x = uvec4(0u);                                                                                 \
          if (row < own_end) x = load(base + uint(row) * stride, d * MATRIX_K + vector * 8u, features);        \
          memory[place + line * ATTN_BACK_PLACE_STRIDE + vector] = x;                                          \
        }                                                                                                      \
        subgroupBarrier();                                                                                     \
      }                                                                                                        \
      [[unroll]] for (uint r = 0u; r < ATTN_BACK_ROW_TILES; ++r)                                               \
        coopMatLoad(matrices[r * STEPS + d], memory,                                                           \
                    place + r * MATRIX_M * ATTN_BACK_PLACE_STRIDE + d % steps * MATRIX_K / 8u,                 \
                    ATTN_BACK_PLACE_STRIDE, kRowMajor);                                                        \
    }                                                                                                          \
  }                                                                                                            \
  void keep(uint to, uint base, uint stride) {                                                                 \
    for (uint at = item; at < ATTN_BACK_OWN * VECTORS; at += WG_X) {                                           \
      const int row = own_first + int(at / VECTORS);                                                           \
      uvec4 x = uvec4(0u);                                                                                     \
      if (row < own_end) x = load(base + uint(row) * stride, at % VECTORS * 8u, features);                     \
      memory[to + at / VECTORS * STRIDE + at % VECTORS] = x;                                                   \
    }                                                                                                          \
  }
#if OWN_KEYS
#define OWN_HEADS k_base, args.core.k_stride_row
#define OWN_VALUES v_base, args.core.v_stride_row
LOAD_OWN(hold_heads, keep_heads, own_heads, load_key, ATTN_BACK_HEAD_STEPS, ATTN_BACK_HEAD_VECTORS,
         ATTN_BACK_HEAD_STRIDE, HEAD_DIM)
LOAD_OWN(hold_values, keep_values, own_values, load_value, ATTN_BACK_VALUE_STEPS, ATTN_BACK_VALUE_VECTORS,
         ATTN_BACK_VALUE_STRIDE, VALUE_DIM)
#else
#define OWN_HEADS q_base, args.core.q_stride_row
#define OWN_VALUES g_base, args.gradient.do_stride_row
LOAD_OWN(hold_heads, keep_heads, own_heads, load_query, ATTN_BACK_HEAD_STEPS, ATTN_BACK_HEAD_VECTORS,
         ATTN_BACK_HEAD_STRIDE, HEAD_DIM)
LOAD_OWN(hold_values, keep_values, own_values, load_gradient, ATTN_BACK_VALUE_STEPS, ATTN_BACK_VALUE_VECTORS,
         ATTN_BACK_VALUE_STRIDE, VALUE_DIM)
#endif

void load_own() {
  if (HELD != 0u) {
    hold_heads(OWN_HEADS);
    hold_values(OWN_VALUES);
  } else {
    keep_heads(0u, OWN_HEADS);
    keep_values(ATTN_BACK_OWN * ATTN_BACK_HEAD_STRIDE, OWN_VALUES);
  }
  barrier();
  [[unroll]] for (uint i = 0u; i < ATTN_BACK_ROW_TILES * ATTN_BACK_HEAD_TILES; ++i) head_sum[i] = COOPERATIVE_SUM(0.0);
}

// name(to, ...): factor times the sums as the sub-group's rows of a gradient, by way of local memory, STEP columns at a
// time: only there is known which element is where. Bit n of the result: of row n, this lane wrote something that is
// not finite.
#define STORE_SUMS(name, write, elements, vectors, sum, TILES, features)                                          \
  uint write(uint to, uint stride, float factor, uint first_column) {                                             \
    uint odd = 0u;                                                                                                \
    [[dont_unroll]] for (uint at = lane; at < ROWS * ATTN_BACK_PLACE_VECTORS / 2u; at += LANES) {                 \
      const uint line = at / (ATTN_BACK_PLACE_VECTORS / 2u), group = at % (ATTN_BACK_PLACE_VECTORS / 2u);         \
      const int row = own_row + int(line);                                                                        \
      const uint column = first_column + group * 8u, from = place + line * ATTN_BACK_PLACE_STRIDE + group * 2u;   \
      if (row >= own_end || column >= features) continue;                                                         \
      if (has_nonfinite_float(memory[from]) || has_nonfinite_float(memory[from + 1u])) odd |= 1u << line;                                   \
      const vec4 low = uintBitsToFloat(memory[from]) * factor, high = uintBitsToFloat(memory[from + 1u]) * factor; \
      const uint begin = to + uint(row) * stride + column;                                                        \
      if (ALIGNED != 0u) {                                                                                        \
        vectors[begin / 8u] = uvec4(store_scalar4(low), store_scalar4(high));                                     \
      } else {                                                                                                    \
        [[unroll]] for (uint c = 0u; c < 4u; ++c) {                                                               \
          if (column + c < features) elements[begin + c] = store_scalar(low[c]);                                  \
          if (column + 4u + c < features) elements[begin + 4u + c] = store_scalar(high[c]);                       \
        }                                                                                                         \
      }                                                                                                           \
    }                                                                                                             \
    return odd;                                                                                                   \
  }                                                                                                               \
  uint name(uint to, uint stride, float factor) {                                                                 \
    uint odd = 0u;                                                                                                \
    [[unroll]] for (uint n = 0u; n < TILES; ++n) {                                                                \
      const uint tile = n % ATTN_BACK_PAIR_TILES;                                                                 \
      [[unroll]] for (uint r = 0u; r < ATTN_BACK_ROW_TILES; ++r)                                                  \
        coopMatStore(sum[r * TILES + n], memory, place + r * MATRIX_M * ATTN_BACK_PLACE_STRIDE + tile * MATRIX_N / 4u, \
                     ATTN_BACK_PLACE_STRIDE, kRowMajor);                                                          \
      if (tile + 1u == ATTN_BACK_PAIR_TILES || n + 1u == TILES) {                                                 \
        subgroupBarrier();                                                                                        \
        odd |= write(to, stride, factor, (n - tile) * MATRIX_N);                                                  \
        subgroupBarrier();                                                                                        \
      }                                                                                                           \
    }                                                                                                             \
    return odd;                                                                                                   \
  }
#if OWN_KEYS
STORE_SUMS(store_keys, write_keys, dk, dk8, head_sum, ATTN_BACK_HEAD_TILES, HEAD_DIM)
STORE_SUMS(store_values, write_values, dv, dv8, value_sum, ATTN_BACK_VALUE_TILES, VALUE_DIM)
#else
STORE_SUMS(store_queries, write_queries, dq, dq8, head_sum, ATTN_BACK_HEAD_TILES, HEAD_DIM)
#endif

#endif  // TESSERA_ATTENTION_COOPERATIVE_BACKWARD_PRODUCTS_GLSL
