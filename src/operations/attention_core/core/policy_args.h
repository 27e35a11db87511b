// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels with POLICY=1: who sees whom and what a score is, beyond a band and a cap.
#ifndef TESSERA_OPERATIONS_ATTENTION_POLICY_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_POLICY_ARGS_H
#include "operations/attention_core/core/args.h"

// Bits of `features`: what this call has.
#define POLICY_MASK 1u
#define POLICY_BIAS 2u
#define POLICY_ALIBI 4u
#define POLICY_SINKS 8u
#define POLICY_SEGMENTS 16u
#define POLICY_POSITIONS 32u
#define POLICY_DROPOUT 64u
#define POLICY_BIAS_AFTER_CAP 128u
#define POLICY_WIDE_BIAS 256u   // bias is float, not the storage type
#define POLICY_WIDE_SINKS 512u  // the same of the sinks
#define POLICY_UNNORMALIZED 1024u
#define POLICY_MAP 2048u  // the map of tiles is there

// What hides single keys inside the interval of a row.
#define POLICY_HIDES (POLICY_MASK | POLICY_SEGMENTS | POLICY_POSITIONS)
// What changes a logit before the cap or after it.
#define POLICY_ADDS (POLICY_BIAS | POLICY_ALIBI)
// What kernels ask about each pair of a row and a key, beyond the row's interval.
#define POLICY_PAIRS (POLICY_HIDES | POLICY_ADDS | POLICY_DROPOUT)
// What may be as large as float goes: see FAR_SCORE.
#define POLICY_FAR (POLICY_BIAS | POLICY_SINKS)

// A log_sum_exp of a larger magnitude is too coarse to make weights from: float holds it to 2^-12
// at best. With POLICY_ADDS, weights of such rows are made from the row's own maximum and sum.
#define COARSE_LOG_SUM_EXP 4096.0f

TESSERA_ABI_BEGIN

// Offsets and strides count elements; a stride of 0 broadcasts. Masks, biases and sinks may have
// fewer heads than the queries: head h reads theirs at h / group.

// An operand with a number for each (batch, head, row, key).
struct AttentionPairArgs {
  u32 offset;
  u32 stride_batch;
  u32 stride_head;
  u32 stride_row;
  u32 stride_key;
  u32 group;
};

struct AttentionPolicyArgs {
  u32 features;
  u32 rows;  // the table of rows begins there in the scratch buffer, in entries of four ints
  u32 map;   // the map of tiles, in words; MAP_... say what a tile may see
  u32 map_stride_batch;
  u32 map_stride_head;
  u32 map_stride_row;              // words per row of tiles
  u32 map_heads;                   // of the map: those of the mask
  u32 map_rows;                    // query rows per tile
  u32 map_keys;                    // keys per tile
  STRUCT(AttentionPairArgs) mask;  // bytes, 0 = hidden
  STRUCT(AttentionPairArgs) bias;
  u32 slopes_offset;
  u32 slopes_stride_batch;
  u32 slopes_stride_head;
  u32 sinks;  // per head
  u32 sinks_offset;
  u32 sinks_stride_head;
  u32 sinks_stride;
  u32 sinks_group;
  u32 kv_segments_offset;
  u32 kv_segments_stride_batch;
  u32 kv_segments_stride_key;
  u32 kv_positions_offset;
  u32 kv_positions_stride_batch;
  u32 kv_positions_stride_key;
  u32 reach_left;         // with positions: the most that the row's exceeds the key's by,
  u32 reach_right;        // and the key's the row's
  u32 chunk;              // 0 = none; with positions: equal position / chunk only
  u32 dropout_threshold;  // a weight is dropped when its random word is below
  f32 dropout_factor;     // of the weights that stay: 1 / (1 - probability)
  u32 seed_low;
  u32 seed_high;
};

struct AttentionCall {
  STRUCT(AttentionArgs) core;
  STRUCT(AttentionPolicyArgs) policy;
};

TESSERA_ABI_END

// What a tile of the map may see.
#define MAP_NOTHING 0u
#define MAP_SOME 1u
#define MAP_ALL 2u

#endif  // TESSERA_OPERATIONS_ATTENTION_POLICY_ARGS_H
