/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_COMBINE_H
#define TESSERA_C_COMBINE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the sums of what experts made of tokens. output[t] = sum_r weights[t, r]
   rows[offsets[expert_ids[t, r]] + slots[t, r]] */
typedef struct tessera_combine_call {
  /* [rows, dim]: what the experts made */
  const tessera_tensor* rows;
  /* [tokens, top_k]: as route gives them */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: -1: the choice is dropped */
  const tessera_tensor* slots;
  /* [experts + 1]: the row at which each expert's places begin */
  const tessera_tensor* offsets;
  /* optional, [tokens, top_k]: 1 where they are left out */
  const tessera_tensor* weights;
  /* output, [tokens, dim]: in the dtype of rows */
  tessera_tensor** output;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_combine_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_combine(const tessera_context* context,
    const tessera_stream* stream, const tessera_combine_call* call) {
  const tessera_operand operands[] = {
      {"rows", call->rows, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "combine",
      operands, 5,
      options, 1,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
