// SPDX-License-Identifier: Apache-2.0
// What attention/hopper/forward_maps and attention/hopper/forward are launched with.
#ifndef TESSERA_OPERATIONS_ATTENTION_HOPPER_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_HOPPER_ARGS_H
#include "operations/attention_core/core/pages_args.h"

// Which edges of the band hide keys.
#define HOPPER_BAND_HIGH 1u
#define HOPPER_BAND_LOW 2u
// Edges cross other tiles than the first that a row takes, which is its last.
#define HOPPER_BAND_INSIDE 4u
// Warpgroups of the last query tile have no rows.
#define HOPPER_NO_ROWS 8u

// How scores become what the softmax takes.
#define HOPPER_SCALED 0u   // by its exponent's factor
#define HOPPER_CAPPED 1u   // by a soft cap, which leaves such a factor
#define HOPPER_GENERAL 2u  // either, with numbers that do not fold into the exponent

// In the scratch buffer, from `maps` on: tensor maps of query, key, value and output, a counter.
#define HOPPER_MAP_BYTES 128u
#define HOPPER_COUNTER (4u * HOPPER_MAP_BYTES)
#define HOPPER_SCRATCH (HOPPER_COUNTER + 4u)
#define HOPPER_ALIGNMENT 64u  // of `maps`, in bytes

TESSERA_ABI_BEGIN

// Keys are counted from `first_key`: those before it, and those from first_key + keys on, are seen
// by no row, so they are no part of the maps and whatever they hold is never read. With policies,
// which know where rows begin and end, all keys are counted.
struct HopperCall {
  STRUCT(AttentionArgs) core;  // its band counts keys from first_key, too
  u32 batch;
  u32 head_dim;
  u32 value_dim;
  u32 first_key;
  u32 keys;
  u32 heads_at_once;  // heads whose keys and values share the cache
  u32 maps;           // in units of HOPPER_ALIGNMENT
  STRUCT(AttentionPolicyArgs) policy;
};

// With PAGED=1.
struct HopperPagedCall {
  STRUCT(HopperCall) hopper;
  STRUCT(AttentionPages) pages;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_HOPPER_ARGS_H
