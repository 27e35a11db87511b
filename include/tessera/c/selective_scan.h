/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_SELECTIVE_SCAN_H
#define TESSERA_C_SELECTIVE_SCAN_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* state space model whose step, input and output depend on the token. h_t[n] = exp(step_t a[n])
   h_(t-1)[n] + step_t b_t[n] u_t; output_t = (sum_n c_t[n] h_t[n] + d u_t) silu(z_t); step_t =
   delta_t + delta_bias, or softplus of it */
typedef struct tessera_selective_scan_call {
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
  /* output, [batch, seq, dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, dim, state]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: steps are log(1 + exp(delta + delta_bias)) */
  tessera_value delta_softplus;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_selective_scan_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_selective_scan(const tessera_context* context,
    const tessera_stream* stream, const tessera_selective_scan_call* call) {
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
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"delta_softplus", call->delta_softplus},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "selective_scan",
      operands, 10,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
