/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RMS_NORM_BACKWARD_H
#define TESSERA_C_RMS_NORM_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of rms_norm. g = grad_output weight; grad_input = (g - n mean(g n)) / sqrt(mean(s^2)
   + epsilon) + grad_sum; grad_weight = sum of grad_output n; grad_bias = sum of grad_output */
typedef struct tessera_rms_norm_backward_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: of the forward call; only its dtype counts */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* [..., dim]: in the shape and dtype of input */
  const tessera_tensor* grad_output;
  /* optional, [..., dim]: joins grad_input */
  const tessera_tensor* grad_sum;
  /* output, [..., dim] */
  tessera_tensor** grad_input;
  /* optional, output, [dim]: in the dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [dim]: in the dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., dim]: in the shape of residual: grad_input, summed where residual
     broadcasts */
  tessera_tensor** grad_residual;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rms_norm_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rms_norm_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_rms_norm_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_sum", call->grad_sum, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_residual", call->grad_residual, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rms_norm_backward",
      operands, 6,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
