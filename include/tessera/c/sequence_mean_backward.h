/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_SEQUENCE_MEAN_BACKWARD_H
#define TESSERA_C_SEQUENCE_MEAN_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradient of sequence_mean's input. grad_input[b,t] = grad_output[b] / how many tokens of b
   count, if t does; else 0 */
typedef struct tessera_sequence_mean_backward_call {
  /* [batch, (heads,) dim] or packed [n, (heads,) dim]: any strides but along the last axis,
     which is contiguous */
  const tessera_tensor* grad_output;
  /* optional, [batch]: how many tokens count, the first ones; clamped to [0, seq] */
  const tessera_tensor* lengths;
  /* optional, [batch, seq]: tokens with a mask that is not 0 count */
  const tessera_tensor* mask;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: 0 for tokens that don't
     count */
  tessera_tensor** grad_input;
  /* int, default none: rows of grad_input, in each batch entry or in all if packed */
  tessera_value tokens;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_sequence_mean_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_sequence_mean_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_sequence_mean_backward_call* call) {
  const tessera_operand operands[] = {
      {"grad_output", call->grad_output, 0},
      {"lengths", call->lengths, 0},
      {"mask", call->mask, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
  };
  const tessera_option options[] = {
      {"tokens", call->tokens},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "sequence_mean_backward",
      operands, 4,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
