// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/position_bias, which makes a bias of each key of one of the first
// keys.
#ifndef TESSERA_OPERATIONS_ATTENTION_POSITION_BIAS_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_POSITION_BIAS_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

struct AttentionPositionBiasArgs {
  u32 keys;
  u32 biases;  // of a head; keys behind them have 0
  u32 type;    // DTYPE_... of the operand
  u32 offset;
  u32 stride_head;
  u32 stride;
  u32 to;  // in floats of the scratch buffer, [heads, keys]
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_POSITION_BIAS_ARGS_H
