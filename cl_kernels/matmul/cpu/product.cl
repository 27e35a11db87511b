// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b), of floats: a by rows, b by panels of two vectors, packed or as they lie.
// Who      A work-group is one item and owns BLOCK_M rows by `panels` panels of a batch.
// Memory   BLOCK_K terms of the block of a and of all panels stay in the second cache while tiles of rows pass; sums in
//          registers, between blocks of terms in private memory.
// Numerics Float, terms in order, of 8 bits by blocks; whole numbers exact; one rounding. With DOT, terms are words of several
//          factors, whose products lib/cpu/words adds up.
// Assumes  Operands below 2^31 elements, columns of a contiguous; rows of panels whole.
#include "lib/cpu/words.clh"
#include "matmul/cpu/operands.clh"

#define PANEL (2 * VECTOR_WIDTH)
// Are the sums of a step added up apart? Dots of i8 are integers all the way.
#if BLOCKS != MATMUL_BLOCKS_NONE && DOT == DOT_NONE
#define BEGINS_ANEW true
#else
#define BEGINS_ANEW false
#endif
// Terms that are added up before the sums wait for the others.
#if BLOCKS == MATMUL_BLOCKS_SCALED
#define STEP MATMUL_BLOCK
#else
#define STEP BLOCK_K
#endif

#if DOT == DOT_NONE
#define ADD(x, y, sum) fma(x, y, sum)
#else
#define ADD(x, y, sum) add_dots(x, y, sum)
#endif

// sum[ROWS][2] += rows of a times a panel of b, over `terms` terms.
#define MATMUL_ADD_ROWS(name, ROWS)                                                                                    \
  INLINE void name(floatv(*sum)[2], const global float* a, size_t a_row, const global float* b, size_t b_row, int terms) { \
    for (int k = 0; k < terms; ++k) {                                                                                  \
      const floatv b0 = vloadv(0, b), b1 = vloadv(1, b);                                                               \
      b += b_row;                                                                                                      \
      UNROLL for (int r = 0; r < (ROWS); ++r) {                                                                        \
        const floatv x = a[r * a_row + k];                                                                             \
        sum[r][0] = ADD(x, b0, sum[r][0]);                                                                             \
        sum[r][1] = ADD(x, b1, sum[r][1]);                                                                             \
      }                                                                                                                \
    }                                                                                                                  \
  }
MATMUL_ADD_ROWS(add_tile, ROWS)
MATMUL_ADD_ROWS(add_row, 1)

#if DOT == DOT_I8
// What the sums of a row of a begin with: without what add_dots() adds up too much.
INLINE float start_of_row(const global float* a, uint words) {
  const floatv ones = as_floatv((uintv)(0x01010101u));
  floatv sum = (floatv)(0.0f);
  for (uint k = 0; k < words; k += VECTOR_WIDTH) {
    floatv x;
    if (words - k >= VECTOR_WIDTH) {
      x = vloadv(0, a + k);
    } else {
      float part[VECTOR_WIDTH];
      ROLLED for (uint i = 0; i < VECTOR_WIDTH; ++i) part[i] = k + i < words ? a[k + i] : 0.0f;
      x = vloadv(0, part);
    }
    sum = add_dots(x, ones, sum);
  }
  int lanes[VECTOR_WIDTH], total = 0;
  vstorev(as_intv(sum), 0, lanes);
  for (int i = 0; i < VECTOR_WIDTH; ++i) total += lanes[i];
  return as_float(total * -128);
}
#define START(i) ((floatv)(starts[i]))
#else
#define START(i) ((floatv)(0.0f))
#endif

// Sums of a row over a step become those of all terms so far, of which `keep` holds those before. `scales`: of the panel's
// columns over the step.
INLINE void add_block(const MatmulOperands* operands, uint batch, uint row, uint from, bool first, const floatv* scales,
                      floatv* sum, const floatv* keep) {
#if BLOCKS == MATMUL_BLOCKS_SCALED
  if (ARGS(k) == 0u) return;  // of no terms there is no scale
  const float scale = matmul_scale_a(operands, batch, row, from / MATMUL_BLOCK);
  UNROLL for (int j = 0; j < 2; ++j) {
    const floatv before = first ? (floatv)(0.0f) : keep[j];
    sum[j] = before + sum[j] * scale * scales[j];
  }
#elif BLOCKS == MATMUL_BLOCKS_WHOLE && DOT == DOT_NONE
  UNROLL for (int j = 0; j < 2; ++j) {
    const intv before = first ? (intv)(0) : as_intv(keep[j]);
    sum[j] = as_floatv(before + JOIN(convert_int, VECTOR_WIDTH)(sum[j]));
  }
#endif
}

KERNEL void matmul_product_cpu(const global float* restrict a_given, const global float* restrict b_given,
                               const global float* restrict scratch, const global void* restrict bias,
                               const global void* restrict addend, const global void* restrict gate,
                               const global void* restrict residual, global void* restrict result,
                               global void* restrict beside, const global float* restrict scale_a,
                               const global float* restrict scale_b, const struct MatmulArgs args) {
  const MatmulOperands call = {&args, bias, addend, gate, residual, result, beside, scale_a, scale_b};
  const MatmulOperands* operands = &call;
  const uint blocks_m = (args.m + BLOCK_M - 1) / BLOCK_M, panels = (args.n + PANEL - 1) / PANEL;
  const bool plain = (args.features & MATMUL_PLAIN) != 0u;
  const uint each = args.panels, blocks_n = (panels + each - 1) / each;
  const uint unit = get_group_id(0), batch = unit / (blocks_m * blocks_n);
  const uint row0 = unit % blocks_m * BLOCK_M, row1 = min(row0 + BLOCK_M, args.m);
  const uint panel0 = unit / blocks_m % blocks_n * each, panel1 = min(panel0 + each, panels);
  const global float* a = (args.packed_a != 0 ? scratch : a_given) + matmul_base(operands, args.a, batch);
  const global float* b = (args.packed_b != 0 ? scratch : b_given) + matmul_base(operands, args.b, batch);
  const size_t bias_at = matmul_base(operands, args.bias, batch);
  const uint blocks_k = (args.k + STEP - 1) / STEP, steps = args.sums * blocks_k;
  floatv kept[PANELS * BLOCK_M * 2];
#if DOT == DOT_I8
  float starts[BLOCK_M];
  for (uint row = row0; row < row1; ++row) starts[row - row0] = start_of_row(a + (size_t)row * args.a.row, args.k);
#endif
  // A product of no terms takes its step, too: the sums are 0.
  for (uint step = 0; step < max(steps, 1u); ++step) {
    const uint summand = blocks_k != 0 ? step / blocks_k : 0, from = blocks_k != 0 ? step % blocks_k * STEP : 0;
    const int terms = (int)min(args.k - from, (uint)STEP);
    const uint outer = summand / args.sums1, inner = summand % args.sums1;
    const global float* a_at = a + (size_t)outer * args.a_sum0 + (size_t)inner * args.a_sum1 + from;
    const global float* b_step = b + (size_t)outer * args.b_sum0 + (size_t)inner * args.b_sum1 + (size_t)from * args.b.row;
    const bool first = step == 0, last = step + 1 >= steps;
    const bool fresh = first || BEGINS_ANEW;
    for (uint panel = panel0; panel < panel1; ++panel) {
      const uint column = panel * PANEL;
      const bool stores = last && plain && (int)(args.n - column) >= PANEL;
      const global float* b_at = b_step + (size_t)panel * args.b.column;
      floatv* keep = kept + (panel - panel0) * BLOCK_M * 2;
      // Of plain products bias is a row of floats.
      const bool adds_bias = stores && (args.features & MATMUL_BIAS) != 0u;
      floatv added[2] = {(floatv)(0.0f), (floatv)(0.0f)};
      if (adds_bias)
        UNROLL for (int j = 0; j < 2; ++j) added[j] = vloadv(j, (const global float*)bias + bias_at + column);
      floatv scales[2];
#if BLOCKS == MATMUL_BLOCKS_SCALED
      UNROLL for (int j = 0; j < 2; ++j) {
        const int count = (int)(args.n - column) - j * VECTOR_WIDTH;
        scales[j] = (floatv)(1.0f);
        if (count > 0 && args.k != 0u)
          scales[j] = matmul_scale_b(operands, batch, column + j * VECTOR_WIDTH, count, from / MATMUL_BLOCK);
      }
#endif
      uint row = row0;
      for (; row + ROWS <= row1; row += ROWS, keep += 2 * ROWS) {
        floatv sum[ROWS][2];
        UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
            sum[r][j] = fresh ? START(row - row0 + r) : keep[2 * r + j];
        if (steps != 0) add_tile(sum, a_at + (size_t)row * args.a.row, args.a.row, b_at, args.b.row, terms);
        UNROLL for (int r = 0; r < ROWS; ++r) add_block(operands, batch, row + r, from, first, scales, sum[r], keep + 2 * r);
        if (stores) {
          if (adds_bias)
            UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j) sum[r][j] += added[j];
          global float* to = (global float*)result + matmul_base(operands, args.result, batch) + column;
          UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j)
              vstorev(sum[r][j], j, to + (size_t)(row + r) * args.result.row);
        } else {
          UNROLL for (int r = 0; r < ROWS; ++r) UNROLL for (int j = 0; j < 2; ++j) keep[2 * r + j] = sum[r][j];
        }
      }
      for (; row < row1; ++row, keep += 2) {
        floatv sum[1][2];
        UNROLL for (int j = 0; j < 2; ++j) sum[0][j] = fresh ? START(row - row0) : keep[j];
        if (steps != 0) add_row(sum, a_at + (size_t)row * args.a.row, args.a.row, b_at, args.b.row, terms);
        add_block(operands, batch, row, from, first, scales, sum[0], keep);
        UNROLL for (int j = 0; j < 2; ++j) keep[j] = sum[0][j];
      }
    }
  }
  for (uint panel = panel0; panel < panel1; ++panel) {
    const uint column = panel * PANEL;
    const int count = (int)(args.n - column);
    // Whole tiles of plain products are written already.
    const uint done = plain && count >= PANEL ? row0 + (row1 - row0) / ROWS * ROWS : row0;
    for (uint row = done; row < row1; ++row) {
      const floatv* sum = kept + ((panel - panel0) * BLOCK_M + (row - row0)) * 2;
#if BLOCKS == MATMUL_BLOCKS_WHOLE
      const intv words[2] = {as_intv(sum[0]), as_intv(sum[1])};
      matmul_finish_whole_row(operands, batch, row, column, count, words);
#else
      matmul_finish_row(operands, batch, row, column, count, sum);
#endif
    }
  }
}
