// SPDX-License-Identifier: Apache-2.0
// What attention/hopper/backward and the passes around it are launched with.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_ARGS_H
#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/hopper/args.h"
TESSERA_ABI_BEGIN

// The maps have the rows that see a key and the keys that a row sees, and whatever the others hold
// is never read. Tiles are counted from row 0 and key 0.
struct HopperBackwardCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionGradientArgs) gradient;
  u32 batch;
  u32 head_dim;
  u32 value_dim;
  u32 first_row;
  u32 rows;
  u32 first_key;
  u32 keys;
  u32 heads_at_once;  // heads of keys whose tiles are dealt together
  u32 dq;             // where query gradients begin in the scratch buffer, in floats
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_BACKWARD_ARGS_H
