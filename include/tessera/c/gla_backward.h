/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_GLA_BACKWARD_H
#define TESSERA_C_GLA_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of gla. D_t = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1), where A_t is
   the factor of H_(t-1) and grad_final_state joins after the last token; grad_query_t =
   softmax_scale H_t grad_output_t; grad_key_t = D_t value_t; grad_value_t = D_t^T key_t;
   grad_initial_state = A_0 D_0; of decays: sums of D_t A_t H_(t-1) */
typedef struct tessera_gla_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [heads]: a log decay of each step, in the dtype of query or in f32 */
  const tessera_tensor* g_gamma;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [batch, seq, heads] or [batch, seq, heads, key_dim]: in the shape and
     dtype of g */
  tessera_tensor** grad_g;
  /* optional, output, [heads]: in the shape and dtype of g_gamma */
  tessera_tensor** grad_g_gamma;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gla_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gla_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_gla_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_g", call->grad_g, 0},
      {"grad_g_gamma", call->grad_g_gamma, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gla_backward",
      operands, 9,
      options, 3,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
