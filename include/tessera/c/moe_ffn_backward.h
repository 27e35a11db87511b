/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MOE_FFN_BACKWARD_H
#define TESSERA_C_MOE_FFN_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of moe_ffn; that of logits is route_backward of grad_weights. of sum over r of
   weights[t, r] (act(input[t] gate_e) * (input[t] up_e)) down_e, e = expert_ids[t, r] */
typedef struct tessera_moe_ffn_backward_call {
  /* [tokens, hidden] */
  const tessera_tensor* input;
  /* [experts, hidden, 2 inner]: the gate's columns, then those of up, or without a gate up's
     alone; [experts, 2 inner, hidden] transposed */
  const tessera_tensor* gate_up;
  /* [experts, inner, hidden]: [experts, hidden, inner] transposed */
  const tessera_tensor* down;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* slots;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* weights;
  /* [experts + 1]: that it gave */
  const tessera_tensor* offsets;
  /* [tokens, hidden]: in the dtype of input */
  const tessera_tensor* grad_output;
  /* optional, output, [tokens, hidden] */
  tessera_tensor** grad_input;
  /* optional, output, [tokens, top_k] */
  tessera_tensor** grad_weights;
  /* optional, output, [experts, hidden, 2 inner]: in the shape and dtype of gate_up */
  tessera_tensor** grad_gate_up;
  /* optional, output, [experts, inner, hidden]: in the shape and dtype of down */
  tessera_tensor** grad_down;
  /* int, default none: of all experts: experts capacity; not set: tokens top_k */
  tessera_value rows;
  /* bool, default false: matrices lie as [experts, out, in] */
  tessera_value transposed;
  /* one of silu, gelu, gelu_tanh, relu, identity, default silu: of the gate, or of up where
     there is none */
  tessera_value activation;
  /* bool, default true: false: experts are act(input up) down, and gate_up is [experts, hidden,
     inner] */
  tessera_value gated;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_moe_ffn_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_moe_ffn_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_moe_ffn_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"gate_up", call->gate_up, 0},
      {"down", call->down, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"weights", call->weights, 0},
      {"offsets", call->offsets, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weights", call->grad_weights, 0},
      {"grad_gate_up", call->grad_gate_up, 0},
      {"grad_down", call->grad_down, 0},
  };
  const tessera_option options[] = {
      {"rows", call->rows},
      {"transposed", call->transposed},
      {"activation", call->activation},
      {"gated", call->gated},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "moe_ffn_backward",
      operands, 8,
      options, 5,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
