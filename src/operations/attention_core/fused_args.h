// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/fused: what ragged_page_attention_v3 does around the calls of two
// other operations.
#ifndef TESSERA_OPERATIONS_ATTENTION_FUSED_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_FUSED_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

// Rows (row, head) of `dim` elements one after the other.
struct AttentionScaledRows {
  u32 offset;
  u32 stride_row;
  u32 stride_head;
};

struct AttentionFusedArgs {
  // Rows by another scale: x / divisor * factor, or the nearest that is in [-most, most].
  u32 elements;  // of all rows; 0 = none
  u32 heads;
  u32 dim;
  u32 type;  // DTYPE_... of both
  u32 code;  // the result is one of this type, DTYPE_I8 and so on; 0 = of `type`
  f32 divisor;
  f32 factor;
  f32 most;
  STRUCT(AttentionScaledRows) from;
  STRUCT(AttentionScaledRows) to;
  // Numbers for keys and values by turns.
  u32 pairs;
  u32 pairs_offset;
  f32 key_scale;
  f32 value_scale;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_FUSED_ARGS_H
