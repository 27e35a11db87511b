/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MATMUL_BACKWARD_H
#define TESSERA_C_MATMUL_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of matmul. t = grad_output * gate * act'(z); grad_a = alpha t op(b)^T; grad_b =
   alpha op(a)^T t; grad_bias = sum of t; grad_c = beta t (0 where beta is 0); grad_gate =
   grad_output * act(z) (of pairs act(even) odd) */
typedef struct tessera_matmul_backward_call {
  /* [..., m, k]: [..., k, m] with transpose_a */
  const tessera_tensor* a;
  /* [..., k, n]: [..., n, k] with transpose_b */
  const tessera_tensor* b;
  /* optional, [n]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., m, n]: joins the sums beta times; not read if that is 0 */
  const tessera_tensor* c;
  /* optional, [..., m, n]: multiplies what the activation gives; n / 2 columns where they are
     paired */
  const tessera_tensor* gate;
  /* [..., m, n]: in the shape of output, of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [..., m, k]: in the shape and dtype of a */
  tessera_tensor** grad_a;
  /* optional, output, [..., k, n]: in the shape and dtype of b */
  tessera_tensor** grad_b;
  /* optional, output, [n]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., m, n]: in the dtype of c */
  tessera_tensor** grad_c;
  /* optional, output, [..., m, n]: in the dtype of gate */
  tessera_tensor** grad_gate;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* bool, default false: a is [..., k, m] */
  tessera_value transpose_a;
  /* bool, default false: b is [..., n, k] */
  tessera_value transpose_b;
  /* float, default 1: factor of the product */
  tessera_value alpha;
  /* float, default 1: factor of c */
  tessera_value beta;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"bias", call->bias, 0},
      {"c", call->c, 0},
      {"gate", call->gate, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_a", call->grad_a, 0},
      {"grad_b", call->grad_b, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_c", call->grad_c, 0},
      {"grad_gate", call->grad_gate, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"transpose_a", call->transpose_a},
      {"transpose_b", call->transpose_b},
      {"alpha", call->alpha},
      {"beta", call->beta},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "matmul_backward",
      operands, 6,
      options, 6,
      outputs, 5,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
