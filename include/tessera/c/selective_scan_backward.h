/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_SELECTIVE_SCAN_BACKWARD_H
#define TESSERA_C_SELECTIVE_SCAN_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of selective_scan. D_t = r_t c_t + exp(step_(t+1) a) D_(t+1), r_t = grad_output_t
   silu(z_t); X_t = D_t exp(step_t a) h_(t-1); grad_u_t = d r_t + step_t sum b_t D_t; grad_b_t =
   sum step_t u_t D_t; grad_c_t = sum r_t h_t; grad_a = sum step_t X_t; grad_delta_t = (u_t sum
   b_t D_t + sum a X_t) softplus' */
typedef struct tessera_selective_scan_backward_call {
  /* [batch, seq, dim] */
  const tessera_tensor* u;
  /* [batch, seq, dim]: steps */
  const tessera_tensor* delta;
  /* [dim, state]: in the dtype of u or in f32 */
  const tessera_tensor* a;
  /* [batch, seq, groups, state] */
  const tessera_tensor* b;
  /* [batch, seq, groups, state] */
  const tessera_tensor* c;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* d;
  /* optional, [batch, seq, dim]: gates */
  const tessera_tensor* z;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* delta_bias;
  /* optional, [sequences, dim, state]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, dim] */
  const tessera_tensor* grad_output;
  /* optional, [sequences, dim, state]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of u */
  tessera_tensor** grad_u;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of delta */
  tessera_tensor** grad_delta;
  /* optional, output, [dim, state]: in the shape and dtype of a */
  tessera_tensor** grad_a;
  /* optional, output, [batch, seq, groups, state]: in the shape and dtype of b */
  tessera_tensor** grad_b;
  /* optional, output, [batch, seq, groups, state]: in the shape and dtype of c */
  tessera_tensor** grad_c;
  /* optional, output, [dim]: in the shape and dtype of d */
  tessera_tensor** grad_d;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of z */
  tessera_tensor** grad_z;
  /* optional, output, [dim]: in the shape and dtype of delta_bias */
  tessera_tensor** grad_delta_bias;
  /* optional, output, [sequences, dim, state]: in the shape and dtype of initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: steps are log(1 + exp(delta + delta_bias)) */
  tessera_value delta_softplus;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_selective_scan_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_selective_scan_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_selective_scan_backward_call* call) {
  const tessera_operand operands[] = {
      {"u", call->u, 0},
      {"delta", call->delta, 0},
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"c", call->c, 0},
      {"d", call->d, 0},
      {"z", call->z, 0},
      {"delta_bias", call->delta_bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_u", call->grad_u, 0},
      {"grad_delta", call->grad_delta, 0},
      {"grad_a", call->grad_a, 0},
      {"grad_b", call->grad_b, 0},
      {"grad_c", call->grad_c, 0},
      {"grad_d", call->grad_d, 0},
      {"grad_z", call->grad_z, 0},
      {"grad_delta_bias", call->grad_delta_bias, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"delta_softplus", call->delta_softplus},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "selective_scan_backward",
      operands, 12,
      options, 2,
      outputs, 9,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
