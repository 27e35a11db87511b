// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/rows, which tells every query row what it may see.
#ifndef TESSERA_OPERATIONS_ATTENTION_ROWS_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_ROWS_ARGS_H
#include "abi/shared.h"

#define ROWS_SEQUENCES 1u  // cum_seqlens_q and cum_seqlens_k
#define ROWS_PACKED 2u     // their sequences lie one after the other in one batch
#define ROWS_Q_LENGTHS 4u
#define ROWS_KV_LENGTHS 8u
#define ROWS_SEGMENTS 16u
#define ROWS_POSITIONS 32u
#define ROWS_BOTTOM_RIGHT 64u

TESSERA_ABI_BEGIN

struct AttentionRowsArgs {
  u32 features;
  u32 batch;
  u32 q_len;
  u32 kv_len;
  u32 sequences;
  i32 band_low;   // of key - position; INDEX_MIN = no lower bound
  i32 band_high;  // INDEX_MAX = no upper bound
  u32 chunk;      // 0 = none
  u32 rows;       // the table, in entries of four ints
  u32 cu_q_offset;
  u32 cu_q_stride;
  u32 cu_k_offset;
  u32 cu_k_stride;
  u32 q_lengths_offset;
  u32 q_lengths_stride;
  u32 kv_lengths_offset;
  u32 kv_lengths_stride;
  u32 segments_offset;
  u32 segments_stride_batch;
  u32 segments_stride_row;
  u32 positions_offset;
  u32 positions_stride_batch;
  u32 positions_stride_row;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_ROWS_ARGS_H
