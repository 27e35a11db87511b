// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of at most eight rows of a, where rows of b are contiguous.
// Who      A work-group is one item and owns VECTORS vectors of columns of a batch.
// Memory   b once, as it lies; a, packed as floats, stays in the caches.
// Numerics Float, terms in order; one rounding.
// Assumes  Operands below 2^31 elements; FEW_ROWS is 1, 4 or 8.
#include "lib/cpu/stored.clh"
#include "matmul/cpu/operands.clh"

#define VECTORS (16 / FEW_ROWS)  // sums stay in registers
#define COLUMNS (VECTORS * VECTOR_WIDTH)
#define BYTES (FROM_TYPE == DTYPE_F32 ? 4 : FROM_TYPE < DTYPE_I8 ? 2 : 1)
#define ROWS_AHEAD 16  // that are asked for: rows of b are pages apart

// sum += all terms of columns that begin at `at`; `count` of them are there, or all.
INLINE void add_columns(const MatmulOperands* operands, const global float* a, const global void* b, size_t at, int count,
                        bool all, floatv (*sum)[VECTORS]) {
  for (uint k = 0; k < ARGS(k); ++k, at += ARGS(b).row) {
    UNROLL for (int line = 0; line < COLUMNS * BYTES; line += 64)
      PREFETCH_FAR((const global uchar*)b + (at + (size_t)ROWS_AHEAD * ARGS(b).row) * BYTES + line);
    UNROLL for (int i = 0; i < VECTORS; ++i) {
      const floatv x = all ? load_stored_whole(b, at + i * VECTOR_WIDTH, FROM_TYPE)
                           : load_stored_part(b, at + i * VECTOR_WIDTH, 1, count - i * VECTOR_WIDTH, FROM_TYPE);
      UNROLL for (uint r = 0; r < FEW_ROWS; ++r) sum[r][i] = fma(x, a[min(r, ARGS(m) - 1) * ARGS(a).row + k], sum[r][i]);
    }
  }
}

KERNEL void matmul_columns_cpu(const global void* restrict b, const global float* restrict scratch,
                               const global void* restrict bias, const global void* restrict addend,
                               const global void* restrict gate, const global void* restrict residual,
                               global void* restrict result, global void* restrict beside,
                               const global float* restrict scale_a, const global float* restrict scale_b,
                               const struct MatmulArgs args) {
  const MatmulOperands call = {&args, bias, addend, gate, residual, result, beside, scale_a, scale_b};
  const MatmulOperands* operands = &call;
  const uint blocks = (args.n + COLUMNS - 1) / COLUMNS, batch = (uint)get_group_id(0) / blocks;
  const uint column = (uint)get_group_id(0) % blocks * COLUMNS;
  const int count = (int)min(args.n - column, (uint)COLUMNS);
  const global float* a = scratch + matmul_base(operands, args.a, batch);
  const size_t at = matmul_base(operands, args.b, batch) + column;
  floatv sum[FEW_ROWS][VECTORS];
  UNROLL for (int r = 0; r < FEW_ROWS; ++r) UNROLL for (int i = 0; i < VECTORS; ++i) sum[r][i] = 0.0f;
  if (count == COLUMNS) {
    add_columns(operands, a, b, at, count, true, sum);
  } else {
    add_columns(operands, a, b, at, count, false, sum);
  }
  ROLLED for (uint row = 0; row < args.m; ++row) {
    ROLLED for (int i = 0; i * VECTOR_WIDTH < count; i += 2)
      matmul_finish_row(operands, batch, row, column + i * VECTOR_WIDTH, count - i * VECTOR_WIDTH, sum[row] + i);
  }
}
