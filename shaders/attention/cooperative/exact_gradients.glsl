// SPDX-License-Identifier: Apache-2.0
// Part of attention/cooperative/backward: rows of gradients by a sub-group without matrices, for those whose sums met a
// number that is not finite: a hidden pair's weight is 0, and 0 times NaN is NaN. Here only pairs that see one another
// count, and what is not finite reaches what the definition says.
//
// A lane has one of LANES rows of the other kind while their pairs are made, then columns lane + LANES c of the sums.
#ifndef TESSERA_ATTENTION_COOPERATIVE_EXACT_GRADIENTS_GLSL
#define TESSERA_ATTENTION_COOPERATIVE_EXACT_GRADIENTS_GLSL
#include "attention/core/gradients.glsl"

#define EXACT_HEADS ((HEAD_DIM + LANES - 1u) / LANES)
#define EXACT_VALUES ((VALUE_DIM + LANES - 1u) / LANES)
float exact_heads[EXACT_HEADS], exact_values[EXACT_VALUES];

void clear_exact() {
  [[unroll]] for (uint c = 0u; c < EXACT_HEADS; ++c) exact_heads[c] = 0.0;
  [[unroll]] for (uint c = 0u; c < EXACT_VALUES; ++c) exact_values[c] = 0.0;
}

#define EXACT_DOT(name, a, b, features)                                  \
  float name(uint a_at, uint b_at) {                                     \
    float x = 0.0;                                                       \
    [[dont_unroll]] for (uint d = 0u; d < features; ++d)                 \
      x = fma(load_scalar(a[a_at + d]), load_scalar(b[b_at + d]), x);    \
    return x;                                                            \
  }
EXACT_DOT(exact_score, q, k, HEAD_DIM)
EXACT_DOT(exact_gradient, g, v, VALUE_DIM)

uint query_at(int row) { return q_base + uint(row) * args.core.q_stride_row; }
uint key_at(int key) { return k_base + uint(key) * args.core.k_stride_row; }
uint gradient_at(int row) { return g_base + uint(row) * args.gradient.do_stride_row; }

Pair exact_pair(int row, int key) {
  return pair_of(load_row(row), key, exact_score(query_at(row), key_at(key)),
                 exact_gradient(gradient_at(row), v_base + uint(key) * args.core.v_stride_row));
}

// sums += factor times a row.
#define EXACT_ADD(name, sums, elements, COLUMNS, features)                                       \
  void name(float factor, uint at) {                                                             \
    [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {                                             \
      const uint column = lane + LANES * c;                                                      \
      if (column < features) sums[c] = fma(factor, load_scalar(elements[at + column]), sums[c]); \
    }                                                                                            \
  }

#if OWN_KEYS
EXACT_ADD(add_exact_queries, exact_heads, q, EXACT_HEADS, HEAD_DIM)
EXACT_ADD(add_exact_gradients, exact_values, g, EXACT_VALUES, VALUE_DIM)

// What rows [first, end_row) of the head give to the key.
void add_exact_key(int key, int first) {
  [[dont_unroll]] for (int tile = first; tile < end_row; tile += int(LANES)) {
    Pair pair = Pair(false, 0.0, 0.0, 0.0);
    if (tile + int(lane) < end_row) pair = exact_pair(tile + int(lane), key);
    [[dont_unroll]] for (uint n = 0u; n < LANES; ++n) {
      if (subgroupShuffle(pair.seen ? 1u : 0u, n) == 0u) continue;
      const float logit = subgroupShuffle(pair.logit, n), weight = subgroupShuffle(pair.weight, n);
      const int row = tile + int(n);
      add_exact_queries(logit, query_at(row));
      if (weight != 0.0) add_exact_gradients(weight, gradient_at(row));
    }
  }
}
#else
EXACT_ADD(add_exact_keys, exact_heads, k, EXACT_HEADS, HEAD_DIM)

// What keys [first, end_key) give to the row.
void add_exact_query(int row, int first) {
  [[dont_unroll]] for (int tile = first; tile < end_key; tile += int(LANES)) {
    Pair pair = Pair(false, 0.0, 0.0, 0.0);
    if (tile + int(lane) < end_key) pair = exact_pair(row, tile + int(lane));
    [[dont_unroll]] for (uint n = 0u; n < LANES; ++n) {
      if (subgroupShuffle(pair.seen ? 1u : 0u, n) == 0u) continue;
      add_exact_keys(subgroupShuffle(pair.logit, n), key_at(tile + int(n)));
    }
  }
}
#endif

#endif  // TESSERA_ATTENTION_COOPERATIVE_EXACT_GRADIENTS_GLSL
