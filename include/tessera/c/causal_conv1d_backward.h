/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_CAUSAL_CONV1D_BACKWARD_H
#define TESSERA_C_CAUSAL_CONV1D_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of causal_conv1d. slope_t = grad_output_t activation'(z_t); grad_input_t = sum_j
   weight[:, j] slope_(t + width - 1 - j), and grad_final_state where it is held there;
   grad_weight[:, j] = sum_t slope_t input_(t - width + 1 + j); grad_bias = sum_t slope_t */
typedef struct tessera_causal_conv1d_backward_call {
  /* [batch, seq, dim] */
  const tessera_tensor* input;
  /* [dim, width]: in the dtype of input or in f32 */
  const tessera_tensor* weight;
  /* optional, [dim]: in the dtype of input or in f32 */
  const tessera_tensor* bias;
  /* optional, [sequences, width - 1, dim]: the inputs before the first, oldest first; 0 where it
     is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, dim] */
  const tessera_tensor* grad_output;
  /* optional, [sequences, width - 1, dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [dim, width]: in the shape and dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [dim]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [sequences, width - 1, dim]: in the shape and dtype of initial_state */
  tessera_tensor** grad_initial_state;
  /* one of none, silu, default none: silu(z) = z / (1 + exp(-z)) */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_causal_conv1d_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_causal_conv1d_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_causal_conv1d_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "causal_conv1d_backward",
      operands, 7,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
