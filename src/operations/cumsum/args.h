// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the cumulative sums: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_CUMSUM_ARGS_H
#define TESSERA_OPERATIONS_CUMSUM_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

// Offsets and strides count elements.
struct CumsumArgs {
  u32 tokens;   // of a batch entry
  u32 units;    // ranges that sums are taken over: chunks of a batch entry, or packed sequences
  u32 batches;  // 1 if packed
  u32 heads;
  u32 dim;
  u32 chunk;
  u32 boundaries;  // of sequences that lie one behind the other; 0 = they do not
  u32 reverse;
  u32 in_type;  // DTYPE_… of abi/shared.h
  u32 out_type;
  f32 scale;
  u32 in_offset;
  u32 in_batch;
  u32 in_token;
  u32 in_head;
  u32 in_feature;
  u32 out_offset;
  u32 out_batch;
  u32 out_token;
  u32 out_head;
  u32 out_feature;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_CUMSUM_ARGS_H
