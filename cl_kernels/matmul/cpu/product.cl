// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b), of floats: a by rows, b by panels of two vectors, packed or as they lie.
// Who      A work-group is one item and owns BLOCK_M rows by `panels` panels of a batch.
// Memory   BLOCK_K terms of a panel stay in the second cache while the rows of the block pass; sums in registers, between
//          blocks of terms in private memory.
// Numerics Float, terms in order; one rounding.
// Assumes  Operands below 2^31 elements, columns of a contiguous; rows of panels whole.
#include "matmul/cpu/operands.clh"

#define PANEL (2 * VECTOR_WIDTH)

// sum[ROWS][2] += rows of a times a panel of b, over `terms` terms.
#define MATMUL_ADD_ROWS(name, ROWS)                                                                                    \
  INLINE void name(floatv(*sum)[2], const global float* a, size_t a_row, const global float* b, size_t b_row, int terms) { \
    for (int k = 0; k < terms; ++k) {                                                                                  \
      const floatv b0 = vloadv(0, b), b1 = vloadv(1, b);                                                               \
      b += b_row;                                                                                                      \
      UNROLL for (int r = 0; r < (ROWS); ++r) {                                                                        \
        const floatv x = a[r * a_row + k];                                                                             \
        sum[r][0] = fma(x, b0, sum[r][0]);                                                                             \
        sum[r][1] = fma(x, b1, sum[r][1]);                                                                             \
      }                                                                                                                \
    }                                                                                                                  \
  }
MATMUL_ADD_ROWS(add_tile, ROWS)
MATMUL_ADD_ROWS(add_row, 1)

KERNEL void matmul_product_cpu(const global float* restrict a_given, const global float* restrict b_given,
                               const global float* restrict scratch, const global void* restrict bias,
                               const global void* restrict addend, const global void* restrict gate,
                               const global void* restrict residual, global void* restrict result,
                               global void* restrict beside, const struct MatmulArgs args) {
  const MatmulOperands call = {&args, bias, addend, gate, residual, result, beside};
  const MatmulOperands* operands = &call;
  const uint blocks_m = (args.m + BLOCK_M - 1) / BLOCK_M, panels = (args.n + PANEL - 1) / PANEL;
  const bool plain = (args.features & MATMUL_PLAIN) != 0u;
  const uint each = args.panels, blocks_n = (panels + each - 1) / each;
  const uint unit = get_group_id(0), batch = unit / (blocks_m * blocks_n);
  const uint row0 = unit % blocks_m * BLOCK_M, row1 = min(row0 + BLOCK_M, args.m);
  const uint panel0 = unit / blocks_m % blocks_n * each, panel1 = min(panel0 + each, panels);
  const global float* a = (args.packed_a != 0 ? scratch : a_given) + matmul_base(operands, args.a, batch);
  const global float* b = (args.packed_b != 0 ? scratch : b_given) + matmul_base(operands, args.b, batch);
  const uint blocks_k = (args.k + BLOCK_K - 1) / BLOCK_K, steps = args.sums * blocks_k;
  float kept[BLOCK_M * PANEL] __attribute__((aligned(64)));
  for (uint panel = panel0; panel < panel1; ++panel) {
    const uint column = panel * PANEL;
    const int count = (int)(args.n - column);
    // A product of no terms takes its step, too: the sums are 0.
    for (uint step = 0; step < max(steps, 1u); ++step) {
      const uint summand = blocks_k != 0 ? step / blocks_k : 0, from = blocks_k != 0 ? step % blocks_k * BLOCK_K : 0;
      const int terms = (int)min(args.k - from, (uint)BLOCK_K);
      const size_t a_at = (size_t)(summand / args.sums1) * args.a_sum0 + (summand % args.sums1) * args.a_sum1 + from;
      const global float* b_at = b + (size_t)(summand / args.sums1) * args.b_sum0 +
                                 (size_t)(summand % args.sums1) * args.b_sum1 + (size_t)panel * args.b.column +
                                 (size_t)from * args.b.row;
      const bool first = step == 0, last = step + 1 >= steps;
      uint row = row0;
      for (; row + ROWS <= row1; row += ROWS) {
        floatv sum[ROWS][2];
        float* keep = kept + (row - row0) * PANEL;
        UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
            sum[r][j] = first ? (floatv)(0.0f) : vloadv(2 * r + j, keep);
        if (steps != 0) add_tile(sum, a + a_at + (size_t)row * args.a.row, args.a.row, b_at, args.b.row, terms);
        if (!last || !plain || count < PANEL) {
          UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j) vstorev(sum[r][j], 2 * r + j, keep);
        } else {
          global float* to = (global float*)result + matmul_base(operands, args.result, batch) + column;
          UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
              vstorev(sum[r][j], j, to + (size_t)(row + r) * args.result.row);
        }
      }
      for (; row < row1; ++row) {
        floatv sum[1][2];
        float* keep = kept + (row - row0) * PANEL;
        UNROLL for (int j = 0; j < 2; ++j) sum[0][j] = first ? (floatv)(0.0f) : vloadv(j, keep);
        if (steps != 0) add_row(sum, a + a_at + (size_t)row * args.a.row, args.a.row, b_at, args.b.row, terms);
        UNROLL for (int j = 0; j < 2; ++j) vstorev(sum[0][j], j, keep);
      }
    }
    // Whole tiles of plain products are written already.
    const uint done = plain && count >= PANEL ? row0 + (row1 - row0) / ROWS * ROWS : row0;
    for (uint row = done; row < row1; ++row) {
      floatv sum[2];
      UNROLL for (int j = 0; j < 2; ++j) sum[j] = vloadv(j, kept + (row - row0) * PANEL);
      matmul_finish_row(operands, batch, row, column, count, sum);
    }
  }
}
