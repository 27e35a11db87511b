// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the norms' kernels, and how they number rows: read by C++, OpenCL C and
// GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_ARGS_H
#define TESSERA_OPERATIONS_NORMS_ARGS_H
#include "abi/shared.h"

// What a call has; bits of `features`.
#define NORM_CENTERED 1u  // layer_norm
#define NORM_WEIGHT 2u
#define NORM_BIAS 4u
#define NORM_RESIDUAL 8u
#define NORM_SUM 16u          // forward: the sum is wanted; backward: its gradient is given
#define NORM_WIDE_WEIGHT 32u  // weight and its gradient are float, not the storage type
#define NORM_WIDE_BIAS 64u    // bias and its gradient
#define NORM_GRAD_WEIGHT 128u
#define NORM_GRAD_BIAS 256u
#define NORM_GRAD_RESIDUAL 512u   // in the shape of input: the bits of grad_input
#define NORM_KEEP_GRADIENT 1024u  // grad_input to scratch as floats, for a residual that broadcasts
#define NORM_STREAM 2048u         // processors: outputs are stored past the caches

TESSERA_ABI_BEGIN

// Where rows lie. Row n of a call is (n / (rows1 rows2), n / rows2 % rows1, n % rows2) along up to
// three leading axes; offset and strides count elements, the last axis is contiguous.
struct NormRows {
  u32 offset;
  u32 stride0;
  u32 stride1;
  u32 stride2;
};

struct NormForwardArgs {
  u32 rows;
  u32 rows1;
  u32 rows2;
  u32 dim;
  u32 features;  // NORM_…
  f32 epsilon;
  f32 mean_factor;  // 1 / dim
  u32 weight_offset;
  u32 bias_offset;
  STRUCT(NormRows) x;
  STRUCT(NormRows) residual;
  STRUCT(NormRows) y;
  STRUCT(NormRows) sum;
};

struct NormBackwardArgs {
  u32 rows;
  u32 rows1;
  u32 rows2;
  u32 dim;
  u32 features;  // NORM_…
  f32 epsilon;
  f32 mean_factor;  // 1 / dim
  u32 weight_offset;
  u32 shares;   // partial sums of grad_weight and of grad_bias in scratch: rows of `columns` floats
  u32 columns;  // dim, rounded up to a multiple of 4
  u32 kept;     // where the floats of grad_input begin in scratch, rows of `columns`
  STRUCT(NormRows) x;
  STRUCT(NormRows) residual;
  STRUCT(NormRows) dy;
  STRUCT(NormRows) dsum;
  STRUCT(NormRows) dx;
  STRUCT(NormRows) dresidual;
};

// Of the pass that adds up `count` rows of scratch for each row of an output. Term n of output row
// (i, j) is scratch row first(i, j) + n / repeats1 * step0 + n % repeats1 * step1.
struct NormCombineArgs {
  u32 rows;  // of the output: axes outer and inner
  u32 inner;
  u32 dim;
  u32 columns;  // floats of a row of scratch
  u32 from;     // where those begin in scratch, in floats
  u32 count;    // terms
  u32 repeats;  // of the inner of the two axes that are summed
  u32 step0;    // in rows of scratch
  u32 step1;
  u32 outer_rows;  // from one outer output row to the next
  u32 inner_rows;
  u32 offset;  // of the output, in elements
  u32 stride0;
  u32 stride1;
  u32 wide;  // not 0: the output is float, not the storage type
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_NORMS_ARGS_H
