/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MERGE_ATTENTION_STATES_H
#define TESSERA_C_MERGE_ATTENTION_STATES_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* attention over parts of the keys, put together by their log-sum-exps. log_sum_exp = log sum_p
   exp(log_sum_exps[p]); output = sum_p exp(log_sum_exps[p] - log_sum_exp) outputs[p]; 0 where no
   part saw a key */
typedef struct tessera_merge_attention_states_call {
  /* [parts, (batch,) seq, heads, dim]: attention over each part of the keys */
  const tessera_tensor* outputs;
  /* [parts, tokens, heads] or [parts, batch, heads, seq]: of each part's rows; -inf: it saw no
     key */
  const tessera_tensor* log_sum_exps;
  /* optional, [(batch,) seq, heads, dim]: one part more, which lies elsewhere */
  const tessera_tensor* other_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: of that part */
  const tessera_tensor* other_log_sum_exp;
  /* output, [(batch,) seq, heads, dim]: in the dtype of outputs */
  tessera_tensor** output;
  /* optional, output, [tokens, heads] or [batch, heads, seq]: over all parts */
  tessera_tensor** log_sum_exp;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_merge_attention_states_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_merge_attention_states(const tessera_context* context,
    const tessera_stream* stream, const tessera_merge_attention_states_call* call) {
  const tessera_operand operands[] = {
      {"outputs", call->outputs, 0},
      {"log_sum_exps", call->log_sum_exps, 0},
      {"other_output", call->other_output, 0},
      {"other_log_sum_exp", call->other_log_sum_exp, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "merge_attention_states",
      operands, 4,
      options, 1,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
