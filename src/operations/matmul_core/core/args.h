// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the products' kernels: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_ARGS_H
#define TESSERA_OPERATIONS_MATMUL_CORE_ARGS_H
#include "abi/shared.h"

// Bits of `features`. The activation is in the lowest three.
#define MATMUL_ACTIVATION 7u
#define MATMUL_NONE 0u
#define MATMUL_RELU 1u
#define MATMUL_GELU 2u  // by the error function
#define MATMUL_GELU_TANH 3u
#define MATMUL_SILU 4u
#define MATMUL_PAIRED 8u     // of two columns the even one is activated and multiplies the odd one
#define MATMUL_GRADIENT 16u  // the result is the gradient of the sum, beside that of the gate
#define MATMUL_BIAS 32u
#define MATMUL_ADDEND 64u
#define MATMUL_GATE 128u
#define MATMUL_RESIDUAL 256u  // with MATMUL_GRADIENT: the gradient of the output
#define MATMUL_BESIDE 512u
// One of those that are more than a factor of the sums.
#define MATMUL_FINISHED                                                                \
  (MATMUL_ACTIVATION | MATMUL_PAIRED | MATMUL_GRADIENT | MATMUL_BIAS | MATMUL_ADDEND | \
   MATMUL_GATE | MATMUL_RESIDUAL | MATMUL_BESIDE)
// Vectors of four elements of a or b that lie at multiples of four: along the axis that is summed,
// or along the other.
#define MATMUL_A_BY_TERMS 1024u
#define MATMUL_A_BY_ROWS 2048u
#define MATMUL_B_BY_TERMS 4096u
#define MATMUL_B_BY_COLUMNS 8192u
// CPUs: sums, or sums and a row of floats as bias, are the result, contiguous rows of words.
#define MATMUL_PLAIN 16384u
#define MATMUL_SCALE_A 32768u
#define MATMUL_SCALE_B 65536u
#define MATMUL_WHOLE 131072u  // the result is the sums themselves, integers of 32 bits

// Values of the constant BLOCKS: terms are added up in floats all the way; or MATMUL_BLOCK of them,
// whose sum is scaled before it joins the others; or as many, whose sum is a whole number that
// float holds and joins the others as an integer.
#define MATMUL_BLOCKS_NONE 0
#define MATMUL_BLOCKS_SCALED 1
#define MATMUL_BLOCKS_WHOLE 2
#define MATMUL_BLOCK 128  // rows, columns or terms that share a scale

// Where the storage type of an operand stands in `types`, four bits each.
#define MATMUL_TYPE_BIAS 0u
#define MATMUL_TYPE_ADDEND 4u
#define MATMUL_TYPE_GATE 8u
#define MATMUL_TYPE_RESIDUAL 12u
#define MATMUL_TYPE_RESULT 16u
#define MATMUL_TYPE_BESIDE 20u

TESSERA_ABI_BEGIN

// Element (row, column) of batch (i, j, l): offset + i batch0 + j batch1 + l batch2 + row `row` +
// column `column`. Counted in elements.
struct MatmulView {
  u32 offset;
  u32 row;
  u32 column;
  u32 batch0;
  u32 batch1;
  u32 batch2;
};

// sum[m, n] = over r and k of a[m, k] b[k, n], both of summand r; then what `features` say.
struct MatmulArgs {
  u32 m;
  u32 n;
  u32 k;
  u32 batches;  // batch number = (i batches1 + j) batches2 + l
  u32 batches1;
  u32 batches2;
  u32 sums;  // summand r = (r / sums1, r % sums1), a_sum0 and a_sum1 apart in a
  u32 sums1;
  u32 a_sum0;
  u32 a_sum1;
  u32 b_sum0;
  u32 b_sum1;
  u32 splits;      // shares of the terms whose sums go to scratch; 1: none do
  u32 partial;     // where those begin in scratch: [splits][batches][m][n rounded up to fours]
  u32 packed_a;    // CPUs: not 0 where a is in scratch, by rows of floats
  u32 packed_b;    // the same of b, by panels of columns; column is the step from one to the next
  u32 panels;      // of an item
  u32 maps;        // Hopper: where tensor maps begin in scratch, in floats
  u32 features;    // MATMUL_…
  u32 types;       // MATMUL_TYPE_…
  u32 scale_rows;  // rows that share an element of scale_a: 1 or MATMUL_BLOCK
  u32 scale_columns;  // the same of columns and scale_b
  u32 scale_terms;    // not 0 where blocks of terms are scaled, else the sums
  f32 alpha;
  f32 beta;
  STRUCT(MatmulView) a;  // [m, k]
  STRUCT(MatmulView) b;  // [k, n]
  STRUCT(MatmulView) bias;
  STRUCT(MatmulView) addend;
  STRUCT(MatmulView) gate;
  STRUCT(MatmulView) residual;
  STRUCT(MatmulView) result;
  STRUCT(MatmulView) beside;
  STRUCT(MatmulView) scale_a;  // [m, k], in blocks
  STRUCT(MatmulView) scale_b;  // [k, n], in blocks
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MATMUL_CORE_ARGS_H
