/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_LINEAR_BACKWARD_H
#define TESSERA_C_LINEAR_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of linear. t = grad_output * gate * act'(z); grad_input = t weight; grad_weight =
   t^T input; grad_bias = sum of t; grad_gate = grad_output * act(z) (of pairs act(even) odd) */
typedef struct tessera_linear_backward_call {
  /* [..., in_features] */
  const tessera_tensor* input;
  /* [out_features, in_features] */
  const tessera_tensor* weight;
  /* optional, [out_features]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., out_features]: multiplies what the activation gives; half as many columns
     where they are paired */
  const tessera_tensor* gate;
  /* [..., out_features]: in the shape of output, of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [..., in_features]: in the dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [out_features, in_features]: in the dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [out_features]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., out_features]: in the dtype of gate */
  tessera_tensor** grad_gate;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_linear_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_linear_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_linear_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"gate", call->gate, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_gate", call->grad_gate, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "linear_backward",
      operands, 5,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
