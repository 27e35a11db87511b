// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/spans, which tells the one query of each sequence what it may see,
// and makes a bias of every key of those of the first keys.
#ifndef TESSERA_OPERATIONS_ATTENTION_SPANS_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_SPANS_ARGS_H
#include "abi/shared.h"

// What is raised, in the order of the record.
#define SPANS_BAD_START 0u
#define SPANS_BAD_END 1u

TESSERA_ABI_BEGIN

struct AttentionSpansArgs {
  u32 batch;
  u32 kv_len;
  i32 band_low;  // of key - position, which is that of the last key; INDEX_MIN = no lower bound
  u32 rows;      // the table, in entries of four ints
  u32 starts_offset;
  u32 starts_stride;
  u32 ends_offset;
  u32 ends_stride;
  u32 errors;
  u32 heads;   // lines of biases; 0 = there are none
  u32 biases;  // of a line; keys behind them have 0
  u32 type;    // DTYPE_... of theirs
  u32 biases_offset;
  u32 biases_stride_head;
  u32 biases_stride;
  u32 to;  // in floats of the scratch buffer, [heads, kv_len]
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_SPANS_ARGS_H
