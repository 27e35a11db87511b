// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b) of at most eight rows of a, where columns of b are contiguous, as a layer of weights has them.
// Who      A work-group is one item and owns two vectors of columns of a batch.
// Memory   b once, LINES columns at a time; a, packed as floats, stays in the caches.
// Numerics Float, a sum in each lane; lanes are added up in pairs; one rounding.
// Assumes  Operands below 2^31 elements; rows of a with zeros up to whole vectors.
#include "lib/cpu/stored.clh"
#include "matmul/cpu/operands.clh"

#define PANEL (2 * VECTOR_WIDTH)
#define LINES (FEW_ROWS == 8 ? 2 : 4)  // at a time: sums stay in registers
#define BYTES (FROM_TYPE == DTYPE_F32 ? 4 : FROM_TYPE < DTYPE_I8 ? 2 : 1)
#define AHEAD 1024  // bytes that are asked for before they are read: processors stop at the end of a page by themselves
// Terms of all columns before the next: of eight rows so many as the first cache holds beside the sums.
#define IN_PARTS (FEW_ROWS == 8)
#define TERMS 256u

KERNEL void matmul_rows_cpu(const global void* restrict b, const global float* restrict scratch,
                            const global void* restrict bias, const global void* restrict addend,
                            const global void* restrict gate, const global void* restrict residual,
                            global void* restrict result, global void* restrict beside,
                            const global float* restrict scale_a, const global float* restrict scale_b,
                            const struct MatmulArgs args) {
  const MatmulOperands call = {&args, bias, addend, gate, residual, result, beside, scale_a, scale_b};
  const MatmulOperands* operands = &call;
  const uint panels = (args.n + PANEL - 1) / PANEL, batch = (uint)get_group_id(0) / panels;
  const uint column = (uint)get_group_id(0) % panels * PANEL, count = min(args.n - column, (uint)PANEL);
  const global float* a = scratch + matmul_base(operands, args.a, batch);
  const size_t from = matmul_base(operands, args.b, batch);
  floatv kept[IN_PARTS ? PANEL : 1][FEW_ROWS];
  float sums[FEW_ROWS][PANEL];
  uint k0 = 0;
  do {
    const uint stop = IN_PARTS && args.k - k0 > TERMS ? k0 + TERMS : args.k;
    for (uint line = 0; line < count; line += LINES) {
      floatv sum[LINES][FEW_ROWS];
      size_t at[LINES];
      UNROLL for (int l = 0; l < LINES; ++l) {
        at[l] = from + (size_t)min(column + line + l, args.n - 1) * args.b.column;
        UNROLL for (int r = 0; r < FEW_ROWS; ++r) sum[l][r] = IN_PARTS && k0 != 0 ? kept[line + l][r] : (floatv)(0.0f);
      }
      for (uint k = k0; k < stop; k += VECTOR_WIDTH) {
        UNROLL for (int l = 0; l < LINES; ++l) {
          const global uchar* later = (const global uchar*)b + (at[l] + k) * BYTES + AHEAD;
          if (IN_PARTS) PREFETCH_FAR(later);
          else PREFETCH(later);
          const floatv x = args.k - k >= VECTOR_WIDTH ? load_stored_whole(b, at[l] + k, FROM_TYPE)
                                                      : load_stored_part(b, at[l] + k, 1, (int)(args.k - k), FROM_TYPE);
          UNROLL for (int r = 0; r < FEW_ROWS; ++r)
            sum[l][r] = fma(x, vloadv(0, a + min((uint)r, args.m - 1) * args.a.row + k), sum[l][r]);
        }
      }
      UNROLL for (int l = 0; l < LINES; ++l) UNROLL for (int r = 0; r < FEW_ROWS; ++r) {
        if (IN_PARTS && stop < args.k)
          kept[line + l][r] = sum[l][r];
        else
          sums[r][line + l] = sum_of_lanes(sum[l][r]);
      }
    }
    k0 += TERMS;
  } while (IN_PARTS && k0 < args.k);
  for (uint row = 0; row < args.m; ++row) {
    const floatv sum[2] = {vloadv(0, sums[row]), vloadv(1, sums[row])};
    matmul_finish_row(operands, batch, row, column, (int)count, sum);
  }
}
