/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_LINEAR_H
#define TESSERA_C_LINEAR_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a layer of weights with bias, activation, gate and residual. output = act(input weight^T +
   bias) * gate + residual */
typedef struct tessera_linear_call {
  /* [..., in_features] */
  const tessera_tensor* input;
  /* [out_features, in_features] */
  const tessera_tensor* weight;
  /* optional, [out_features]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., out_features]: multiplies what the activation gives; half as many columns
     where they are paired */
  const tessera_tensor* gate;
  /* optional, [..., out_features]: added last, in the shape of output */
  const tessera_tensor* residual;
  /* optional, [..., rows, columns]: of input in 8 bits: one, of each row that is no term, or of
     128 x 128, 1 x 128 */
  const tessera_tensor* scale_input;
  /* optional, [..., rows, columns]: of weight in 8 bits: one, of each row that is no term, or of
     128 x 128, 1 x 128 */
  const tessera_tensor* scale_weight;
  /* output, [..., out_features]: half as many columns where they are paired */
  tessera_tensor** output;
  /* optional, output, [..., 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of input, of
     8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_linear_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_linear(const tessera_context* context,
    const tessera_stream* stream, const tessera_linear_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"gate", call->gate, 0},
      {"residual", call->residual, 0},
      {"scale_input", call->scale_input, 0},
      {"scale_weight", call->scale_weight, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"output_dtype", call->output_dtype},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "linear",
      operands, 7,
      options, 4,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
