/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_DISPATCH_H
#define TESSERA_C_DISPATCH_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the rows of tokens, sorted by the experts that they go to. output[offsets[expert_ids[t, r]] +
   slots[t, r]] = weights[t, r] input[t]; rows without a token are 0 */
typedef struct tessera_dispatch_call {
  /* [tokens, dim]: any stride between rows */
  const tessera_tensor* input;
  /* [tokens, top_k]: as route gives them */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: -1: the choice is dropped */
  const tessera_tensor* slots;
  /* [experts + 1]: the row at which each expert's places begin */
  const tessera_tensor* offsets;
  /* optional, [tokens, top_k]: 1 where they are left out */
  const tessera_tensor* weights;
  /* output, [rows, dim]: 0 where no token has its place */
  tessera_tensor** output;
  /* int, default none: of output: experts capacity; tokens top_k where it is not set */
  tessera_value rows;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dispatch_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dispatch(const tessera_context* context,
    const tessera_stream* stream, const tessera_dispatch_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"rows", call->rows},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dispatch",
      operands, 5,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
