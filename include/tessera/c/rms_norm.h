/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RMS_NORM_H
#define TESSERA_C_RMS_NORM_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RMSNorm over the last axis, of the sum with a residual. s = input + residual; output = s /
   sqrt(mean(s^2) + epsilon) * weight + bias */
typedef struct tessera_rms_norm_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: the dtype of input, or f32; 0 without it */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* output, [..., dim]: in the shape and dtype of input, or quantised */
  tessera_tensor** output;
  /* optional, output, [..., dim]: input + residual, which output is not rounded from */
  tessera_tensor** sum;
  /* optional, output, [..., 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rms_norm_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rms_norm(const tessera_context* context,
    const tessera_stream* stream, const tessera_rms_norm_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"sum", call->sum, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rms_norm",
      operands, 4,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
