/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MATMUL_H
#define TESSERA_C_MATMUL_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* matrix product with bias, addend, activation, gate and residual. output = act(alpha op(a)
   op(b) + bias + beta c) * gate + residual */
typedef struct tessera_matmul_call {
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
  /* optional, [..., m, n]: added last; n / 2 columns where they are paired */
  const tessera_tensor* residual;
  /* optional, [..., rows, columns]: of a in 8 bits: one, of each row that is no term, or of 128
     x 128, 1 x 128 */
  const tessera_tensor* scale_a;
  /* optional, [..., rows, columns]: of b in 8 bits: one, of each row that is no term, or of 128
     x 128, 1 x 128 */
  const tessera_tensor* scale_b;
  /* output, [..., m, n]: n / 2 columns where they are paired */
  tessera_tensor** output;
  /* optional, output, [..., m, 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
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
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of a, of 8-bit
     floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_matmul_call* call) {
  const tessera_operand operands[] = {
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"bias", call->bias, 0},
      {"c", call->c, 0},
      {"gate", call->gate, 0},
      {"residual", call->residual, 0},
      {"scale_a", call->scale_a, 0},
      {"scale_b", call->scale_b, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"transpose_a", call->transpose_a},
      {"transpose_b", call->transpose_b},
      {"alpha", call->alpha},
      {"beta", call->beta},
      {"output_dtype", call->output_dtype},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "matmul",
      operands, 8,
      options, 8,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
