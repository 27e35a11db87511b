/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RECURRENT_H
#define TESSERA_C_RECURRENT_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* linear attention with a state and four log decays. H_t[k,v] = exp(g_t + g_gamma_h + gk_t[k] +
   gv_t[v]) H_(t-1)[k,v] + key_t[k] value_t[v]; output_t[v] = softmax_scale sum_k query_t[k]
   H_t[k,v] */
typedef struct tessera_recurrent_call {
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
  /* optional, [batch, seq, heads, key_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gk;
  /* optional, [batch, seq, heads, value_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gv;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, in-out, [sequences, heads, key_dim, value_dim]: the state before the first token,
     which becomes that after the last; in place of initial_state and final_state */
  const tessera_tensor* state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_recurrent_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_recurrent(const tessera_context* context,
    const tessera_stream* stream, const tessera_recurrent_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"gk", call->gk, 0},
      {"gv", call->gv, 0},
      {"initial_state", call->initial_state, 0},
      {"state", call->state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "recurrent",
      operands, 10,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
