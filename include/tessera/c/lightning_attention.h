/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_LIGHTNING_ATTENTION_H
#define TESSERA_C_LIGHTNING_ATTENTION_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* linear attention with a fixed decay for each head and layer (arXiv:2401.04658). H_t = exp(-(8
   / heads) (1 - layer_idx / num_layers) h) H_(t-1) + key_t value_t^T; output_t = softmax_scale
   H_t^T query_t */
typedef struct tessera_lightning_attention_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
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
  /* int, default none: from 0; must be below num_layers */
  tessera_value layer_idx;
  /* int, default none: at least 1 */
  tessera_value num_layers;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lightning_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lightning_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_lightning_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
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
      {"layer_idx", call->layer_idx},
      {"num_layers", call->num_layers},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lightning_attention",
      operands, 6,
      options, 5,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
