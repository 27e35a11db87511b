// SPDX-License-Identifier: Apache-2.0
// What     As attention/cpu/forward.cl.
// Who      As attention/cpu/forward.cl.
// Memory   As attention/cpu/forward.cl.
// Numerics As attention/cpu/forward.cl, but the factors of products are bfloat16: the weights, at most 2^0.5, are
//          rounded to it for the second product, though not for their sums, and subnormal factors count for 0.
// Assumes  As attention/cpu/forward.cl; DTYPE_BF16, VECTOR_WIDTH = 16, a CPU with AVX512_BF16.
#define BF16_DOT 1
#include "attention/cpu/key_rows.clh"
#include "operations/attention_core/cpu/forward.h"

// sum + a b, of both factors of a word. Assembly, because compilers that PoCL was built with are not told of
// AVX512_BF16; Feature::kCpuBf16Dot says that the CPU has it. Products are exact, sums are rounded to nearest even.
INLINE floatv multiply_add(floatv a, floatv b, floatv sum) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

// One factor of each word.
INLINE floatv factor_of(floatv words, int n) {
  return as_floatv(n == 0 ? as_uintv(words) << 16u : as_uintv(words) & 0xffff0000u);
}

// VECTOR_WIDTH elements from p, `count` of them if that is less, and zeros in the other lanes.
INLINE ushort16 load_bits(const global scalar* p, int count) {
  if (count >= VECTOR_WIDTH) return vload16(0, p);
  ushort part[VECTOR_WIDTH];
  for (int i = 0; i < VECTOR_WIDTH; ++i) part[i] = i < count ? p[i] : 0;
  return vload16(0, part);
}

// The VECTOR_WIDTH words of a row of HEAD_DIM features from word n on.
INLINE floatv load_words(const global scalar* row, int n) {
  const ushort16 low = load_bits(row + 2 * n, HEAD_DIM - 2 * n);
  const ushort16 high = load_bits(row + 2 * n + VECTOR_WIDTH, HEAD_DIM - 2 * n - VECTOR_WIDTH);
  return as_floatv((uint16)(as_uint8(low), as_uint8(high)));
}

// As load_panel() does, but without the factor.
INLINE void load_queries(PanelRows rows, int first, int last, float factor, floatv (*panel)[VECTORS]) {
  for (int j = 0; j < VECTORS; ++j) {
    for (int n = 0; n < ATTN_HEAD_WORDS; n += VECTOR_WIDTH) {
      floatv x[VECTOR_WIDTH];
      UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) {
        const int row = first + j * VECTOR_WIDTH + i;
        PREFETCH(panel_row(rows, min(row + VECTOR_WIDTH, last)) + 2 * n);
        x[i] = load_words(panel_row(rows, min(row, last)), n);
      }
      transpose(x);
      UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) panel[n + i][j] = x[i];
    }
  }
}

INLINE void convert_key(const global scalar* row, floatv* to) {
  for (int n = 0; n < ATTN_HEAD_WORDS; n += VECTOR_WIDTH) to[n / VECTOR_WIDTH] = load_words(row, n);
}

// Two rows from `row` on, or `last` if it comes before: pairs of a feature. Returns zeros, or a NaN where a feature is
// not finite.
INLINE floatv convert_values(KeyRows rows, int row, int last, floatv* to) {
  const global scalar *even = key_row(rows, min(row, last)), *odd = key_row(rows, min(row + 1, last));
  floatv wild = 0.0f;
  for (int d = 0; d < VALUE_DIM; d += VECTOR_WIDTH) {
    const uint16 low = convert_uint16(load_bits(even + d, VALUE_DIM - d));
    const uint16 high = convert_uint16(load_bits(odd + d, VALUE_DIM - d));
    const floatv x = as_floatv(low | high << 16u);
    to[d / VECTOR_WIDTH] = x;
    wild = multiply_add(x, (floatv)(0.0f), wild);
  }
  return wild;
}

// Rounds the weights of an even key and the odd one after it.
INLINE floatv join_weights(const floatv* weight) {
  const uintv order = as_uintv(LANE_INDEX) * 0x10001u + 0x100000u;  // halves of a vector, in turns
  floatv halves, words;
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(halves) : "v"(weight[1]), "v"(weight[0]));
  __asm__("vpermw %1, %2, %0" : "=v"(words) : "v"(halves), "v"(order));
  return words;
}

#include "attention/cpu/forward.clh"
