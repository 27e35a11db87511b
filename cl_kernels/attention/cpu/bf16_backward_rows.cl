// SPDX-License-Identifier: Apache-2.0
// What     As attention/cpu/backward_rows.cl; packed rows are words of bfloat16, of features and of rows.
// Who      As attention/cpu/backward_rows.cl.
// Memory   As attention/cpu/backward_rows.cl.
// Numerics As attention/cpu/backward_rows.cl.
// Assumes  As attention/cpu/backward_rows.cl; DTYPE_BF16, VECTOR_WIDTH = 16.
#define BF16_DOT 1
#include "attention/cpu/bf16_words.clh"
#include "operations/attention_core/cpu/backward.h"

// Returns zeros, or a NaN where a feature is not finite.
INLINE floatv pack_row(const global scalar* row, int features, global float* to) {
  for (int n = 0; 2 * n < features; n += VECTOR_WIDTH) vstorev(load_words(row, features, n), 0, to + n);
  return wildness(row, features);
}

// The values of a feature in two rows, each in a word, from the words of features of either row.
INLINE void join_words(const global float* even, int features, global float* to) {
  for (int n = 0; 2 * n < features; n += VECTOR_WIDTH) {
    const uintv first = as_uintv(vloadv(0, even + n)), second = as_uintv(vloadv(0, even + ATTN_PACKED_STRIDE + n));
    const uintv low = (first & 0xffffu) | second << 16u, high = first >> 16u | (second & 0xffff0000u);
    uintv words[2];
    words[0].even = low.lo;
    words[0].odd = high.lo;
    words[1].even = low.hi;
    words[1].odd = high.hi;
    vstorev(as_floatv(words[0]), 0, to + 2 * n);
    if (2 * n + VECTOR_WIDTH < features) vstorev(as_floatv(words[1]), 0, to + 2 * n + VECTOR_WIDTH);
  }
}

INLINE void join_packed_rows(global float* packed, int first, int end) {
  for (int row = first; row < end; row += 2) {
    global float* even = packed + (size_t)row * ATTN_PACKED_STRIDE;
    join_words(even, HEAD_DIM, even + ATTN_QUERY_WORDS);
    join_words(even + ATTN_PACKED_GRADIENT, VALUE_DIM, even + ATTN_GRADIENT_WORDS);
  }
}

#include "attention/cpu/backward_rows.clh"
