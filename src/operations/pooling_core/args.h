// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the mean pooling kernels: an OpenCL by-value struct, a GLSL block.
#ifndef TESSERA_OPERATIONS_MEAN_POOLING_ARGS_H
#define TESSERA_OPERATIONS_MEAN_POOLING_ARGS_H
#include "abi/shared.h"

// Which tokens a row is the mean of.
#define POOL_CHUNKS 0           // `chunk` of a batch entry; a whole sequence is one chunk
#define POOL_LENGTHS 1          // the first lengths[batch] of a batch entry
#define POOL_MASK 2             // those of a batch entry whose mask is not 0
#define POOL_SEQUENCES 3        // a sequence of a packed input; from here on cu_seqlens is read
#define POOL_SEQUENCE_CHUNKS 4  // `chunk` of such a sequence

TESSERA_ABI_BEGIN

// Offsets and strides count elements; the feature axis is contiguous. x is the operand with tokens,
// y the one with rows.
struct MeanPoolingArgs {
  u32 pool;       // POOL_…
  u32 batch;      // 1 if packed
  u32 tokens;     // of a batch entry
  u32 rows;       // of a batch entry
  u32 sequences;  // packed in x; 0 = it is not packed
  u32 chunk;      // tokens of a row, at most
  u32 heads;
  u32 dim;  // features of a head
  u32 x_offset;
  u32 x_stride_batch;
  u32 x_stride_token;
  u32 x_stride_head;
  u32 y_offset;
  u32 y_stride_batch;
  u32 y_stride_row;
  u32 y_stride_head;
  u32 index_offset;    // of lengths, mask or cu_seqlens, whichever the call has
  u32 index_stride;    // from one batch entry to the next, or along cu_seqlens
  u32 mask_stride;     // from one token to the next
  u32 partial_sums;    // where they begin in scratch, in vectors of 4 floats
  u32 partial_counts;  // where they begin in scratch, in ints
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MEAN_POOLING_ARGS_H
