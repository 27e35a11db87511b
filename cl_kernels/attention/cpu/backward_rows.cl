// SPDX-License-Identifier: Apache-2.0
// What     Around attention/cpu/backward. Before it, packs rows of q and do, which every block of keys reads, as floats
//          one after another, and makes delta[i] = sum_d do[i,d] o[i,d]; after it, dq = scale * the sum of its partial sums.
// Who      A work-group is one item. It owns ATTN_CPU_ROW_BLOCK rows of one (batch, head).
// Memory   q, o, do, partial sums once; packed rows, delta, dq once.
// Numerics Float; splits in order; one rounding.
// Assumes  Contiguous features.
#define BF16_DOT 0
#include "lib/cpu/panels.clh"
#include "operations/attention_core/cpu/backward.h"

// The features of a row as floats; zeros, or a NaN where one is not finite.
INLINE floatv pack_row(const global scalar* row, int features, global float* to) {
  floatv wild = 0.0f;
  for (int d = 0; d < features; d += VECTOR_WIDTH) {
    const floatv x = load_part(row + d, features - d);
    stream_vector(x, to + d);
    wild = fma(x, (floatv)(0.0f), wild);
  }
  return wild;
}

INLINE void join_packed_rows(global float* packed, int first, int end) {}

#include "attention/cpu/backward_rows.clh"
