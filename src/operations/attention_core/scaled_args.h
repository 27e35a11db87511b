// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/scaled_rows, which gives numbers another scale, and of
// attention/core/scale_pairs, which writes one for keys and one for values.
#ifndef TESSERA_OPERATIONS_ATTENTION_SCALED_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_SCALED_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

// Rows (row, head) of `dim` elements one after the other.
struct AttentionScaledRows {
  u32 offset;
  u32 stride_row;
  u32 stride_head;
};

struct AttentionScaledArgs {
  u32 rows;
  u32 heads;
  u32 dim;
  u32 code;     // the result is one of this type, DTYPE_I8 and so on; 0 = of the storage type
  f32 divisor;  // the result is x / divisor * factor, or the nearest that is in [-most, most]
  f32 factor;
  f32 most;
  STRUCT(AttentionScaledRows) from;
  STRUCT(AttentionScaledRows) to;
};

struct AttentionScalePairsArgs {
  u32 count;  // of numbers, keys' and values' by turns
  u32 offset;
  f32 key;
  f32 value;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_SCALED_ARGS_H
