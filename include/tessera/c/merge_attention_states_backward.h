/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MERGE_ATTENTION_STATES_BACKWARD_H
#define TESSERA_C_MERGE_ATTENTION_STATES_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of merge_attention_states. w[p] = exp(log_sum_exps[p] - log_sum_exp); d[p] =
   grad_output . outputs[p]; grad_outputs[p] = w[p] grad_output; grad_log_sum_exps[p] = w[p]
   (d[p] - sum_q w[q] d[q] + grad_log_sum_exp) */
typedef struct tessera_merge_attention_states_backward_call {
  /* [parts, (batch,) seq, heads, dim]: attention over each part of the keys */
  const tessera_tensor* outputs;
  /* [parts, tokens, heads] or [parts, batch, heads, seq]: of each part's rows; -inf: it saw no
     key */
  const tessera_tensor* log_sum_exps;
  /* optional, [(batch,) seq, heads, dim]: one part more, which lies elsewhere */
  const tessera_tensor* other_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: of that part */
  const tessera_tensor* other_log_sum_exp;
  /* [(batch,) seq, heads, dim]: in the dtype of outputs */
  const tessera_tensor* grad_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: 0 where it is left out */
  const tessera_tensor* grad_log_sum_exp;
  /* output, [parts, (batch,) seq, heads, dim] */
  tessera_tensor** grad_outputs;
  /* output, [parts, tokens, heads] or [parts, batch, heads, seq] */
  tessera_tensor** grad_log_sum_exps;
  /* optional, output, [(batch,) seq, heads, dim]: where there is another part */
  tessera_tensor** grad_other_output;
  /* optional, output, [tokens, heads] or [batch, heads, seq]: where there is another part */
  tessera_tensor** grad_other_log_sum_exp;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_merge_attention_states_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_merge_attention_states_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_merge_attention_states_backward_call* call) {
  const tessera_operand operands[] = {
      {"outputs", call->outputs, 0},
      {"log_sum_exps", call->log_sum_exps, 0},
      {"other_output", call->other_output, 0},
      {"other_log_sum_exp", call->other_log_sum_exp, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_log_sum_exp", call->grad_log_sum_exp, 0},
  };
  const tessera_output outputs[] = {
      {"grad_outputs", call->grad_outputs, 0},
      {"grad_log_sum_exps", call->grad_log_sum_exps, 0},
      {"grad_other_output", call->grad_other_output, 0},
      {"grad_other_log_sum_exp", call->grad_other_log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "merge_attention_states_backward",
      operands, 6,
      options, 1,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
