/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_GRU_BACKWARD_H
#define TESSERA_C_GRU_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of gru. back through time: grad_h_t = grad_output_t + what the step after t gives
   h_t, grad_h_n behind the last; d_t the gradient of the gates' sums; grad_input = d weight_ih;
   grad_weight_ih = d^T input; grad_weight_hh = d^T h_(t-1) */
typedef struct tessera_gru_backward_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* [batch, seq, directions * hidden] */
  const tessera_tensor* grad_output;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* grad_h_n;
  /* optional, [batch, seq, directions, 5 * hidden]: what forward left there; forward is computed
     again where it is left out */
  const tessera_tensor* reserve;
  /* optional, output, [batch, seq, features]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [directions, gates * hidden, features]: in the shape and dtype of
     weight_ih */
  tessera_tensor** grad_weight_ih;
  /* optional, output, [directions, gates * hidden, hidden]: in the shape and dtype of weight_hh */
  tessera_tensor** grad_weight_hh;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_ih */
  tessera_tensor** grad_bias_ih;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_hh */
  tessera_tensor** grad_bias_hh;
  /* optional, output, [directions, batch, hidden]: in the shape and dtype of h0 */
  tessera_tensor** grad_h0;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gru_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gru_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_gru_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_h_n", call->grad_h_n, 0},
      {"reserve", call->reserve, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight_ih", call->grad_weight_ih, 0},
      {"grad_weight_hh", call->grad_weight_hh, 0},
      {"grad_bias_ih", call->grad_bias_ih, 0},
      {"grad_bias_hh", call->grad_bias_hh, 0},
      {"grad_h0", call->grad_h0, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gru_backward",
      operands, 10,
      options, 2,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
