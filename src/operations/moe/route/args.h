// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels that route tokens: C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MOE_ROUTE_ARGS_H
#define TESSERA_OPERATIONS_MOE_ROUTE_ARGS_H
#include "abi/shared.h"

#define MOE_NO_CAPACITY 0xffffffffu
#define MOE_BLOCK 512u   // choices whose places a work-group finds
#define MOE_TOKENS 256u  // tokens whose scores a work-group adds up

TESSERA_ABI_BEGIN

struct MoeRouteArgs {
  u32 tokens;
  u32 experts;
  u32 top_k;
  u32 groups;
  u32 top_groups;
  u32 sigmoid;
  u32 biased;
  u32 capacity;  // or MOE_NO_CAPACITY
  u32 renormalise;
  f32 scale;
  f32 noise;  // its standard deviation
  u32 seed_low;
  u32 seed_high;
  u32 logits_offset;
  u32 logits_stride;
  u32 bias_offset;
  u32 ids_offset;
  u32 slots_offset;
  u32 weights_offset;
  u32 counts_offset;
  u32 offsets_offset;
  u32 balance_offset;
  u32 z_offset;
  f32 balance;  // coefficient; 0 where the loss is not wanted
  f32 z;
  // Where parts of scratch begin, in words.
  u32 sums_of_exp;  // the log-sum-exp of each token's logits
  u32 block_counts;
  u32 totals;  // choices of each expert before any is dropped
  u32 block_sums;
};

struct MoeRouteBackwardArgs {
  STRUCT(MoeRouteArgs) route;
  u32 grad_weights_offset;
  u32 grad_balance_offset;
  u32 grad_z_offset;
  u32 grad_logits_offset;
  u32 grad_logits_stride;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MOE_ROUTE_ARGS_H
