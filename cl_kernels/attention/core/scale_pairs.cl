// SPDX-License-Identifier: Apache-2.0
// What     The scale of keys and that of values by turns.
// Who      Item (x): number x.
// Memory   4 bytes each.
// Numerics Floats as they are.
// Assumes  Nothing.
#include "lib/prelude.clh"
#include "operations/attention_core/scaled_args.h"

KERNEL void attention_scale_pairs(global float* restrict to, const struct AttentionScalePairsArgs a) {
  const uint n = get_global_id(0);
  if (n < a.count) to[a.offset + n] = n % 2 == 0 ? a.key : a.value;
}
