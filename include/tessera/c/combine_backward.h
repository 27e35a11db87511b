/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_COMBINE_BACKWARD_H
#define TESSERA_C_COMBINE_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of combine. grad_rows[p(t, r)] = weights[t, r] grad_output[t]; grad_weights[t, r] =
   grad_output[t] . rows[p(t, r)] */
typedef struct tessera_combine_backward_call {
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
  /* [tokens, dim]: in the dtype of rows */
  const tessera_tensor* grad_output;
  /* output, [rows, dim]: 0 where no token has its place */
  tessera_tensor** grad_rows;
  /* optional, output, [tokens, top_k]: 0 of choices that are dropped */
  tessera_tensor** grad_weights;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_combine_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_combine_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_combine_backward_call* call) {
  const tessera_operand operands[] = {
      {"rows", call->rows, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_rows", call->grad_rows, 0},
      {"grad_weights", call->grad_weights, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "combine_backward",
      operands, 6,
      options, 1,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
