// SPDX-License-Identifier: Apache-2.0
// What     Biases of the first keys of each head as a bias of every key, in float: 0 behind them.
// Who      Item (x, y): key x of head y.
// Memory   Each bias read once, four bytes for each head and key written.
// Numerics Floats as they are stored.
// Assumes  Counts below 2^32.
#include "lib/typed.clh"
#include "operations/attention_core/core/position_bias_args.h"

KERNEL void attention_position_bias(const global void* restrict biases, global float* restrict scratch,
                                    const struct AttentionPositionBiasArgs a) {
  const uint key = get_global_id(0), head = get_group_id(1);
  if (key >= a.keys) return;
  float bias = 0.0f;
  if (key < a.biases) bias = load_typed_steps(biases, a.offset + head * a.stride_head + key * a.stride, 1, 1, a.type).s0;
  scratch[a.to + head * a.keys + key] = bias;
}
