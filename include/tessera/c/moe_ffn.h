/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_MOE_FFN_H
#define TESSERA_C_MOE_FFN_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a mixture of experts, each a feed-forward network, gated or not: choice and all. output[t] =
   sum over the kept choices r of t of weights[t, r] (act(input[t] gate_e) * (input[t] up_e))
   down_e, e = expert_ids[t, r]; choices and weights as route's of logits */
typedef struct tessera_moe_ffn_call {
  /* [tokens, hidden] */
  const tessera_tensor* input;
  /* [tokens, experts]: of the router */
  const tessera_tensor* logits;
  /* [experts, hidden, 2 inner]: the gate's columns, then those of up, or without a gate up's
     alone; [experts, 2 inner, hidden] transposed */
  const tessera_tensor* gate_up;
  /* [experts, inner, hidden]: [experts, hidden, inner] transposed */
  const tessera_tensor* down;
  /* optional, [experts]: as route's */
  const tessera_tensor* bias;
  /* output, [tokens, hidden]: in the dtype of input */
  tessera_tensor** output;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** expert_ids;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** slots;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** weights;
  /* output, [experts]: as route's */
  tessera_tensor** counts;
  /* output, [experts + 1]: as route's */
  tessera_tensor** offsets;
  /* optional, output, [1] */
  tessera_tensor** balance_loss;
  /* optional, output, [1] */
  tessera_tensor** z_loss;
  /* one of softmax, sigmoid, default softmax: of logits; a sigmoid is at least 1e-6 */
  tessera_value score;
  /* bool, default true: weights are scores over the sum of those of the token's kept choices */
  tessera_value renormalise;
  /* float, default 1: of weights */
  tessera_value scale;
  /* float, default 0: standard deviation of what is added to logits */
  tessera_value noise;
  /* int, default 0: of the noise */
  tessera_value seed;
  /* float, default 0.01: of the balance loss */
  tessera_value balance_coefficient;
  /* float, default 0.001: of the z loss */
  tessera_value z_coefficient;
  /* int, default 2: experts of a token */
  tessera_value top_k;
  /* int, default 1: of experts, by their best score, or the sum of their two best with a bias */
  tessera_value groups;
  /* int, default none: that are kept; all of them */
  tessera_value top_groups;
  /* int, default none: places of an expert; not set: dropless */
  tessera_value capacity;
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
} tessera_moe_ffn_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_moe_ffn(const tessera_context* context,
    const tessera_stream* stream, const tessera_moe_ffn_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"logits", call->logits, 0},
      {"gate_up", call->gate_up, 0},
      {"down", call->down, 0},
      {"bias", call->bias, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"weights", call->weights, 0},
      {"counts", call->counts, 0},
      {"offsets", call->offsets, 0},
      {"balance_loss", call->balance_loss, 0},
      {"z_loss", call->z_loss, 0},
  };
  const tessera_option options[] = {
      {"score", call->score},
      {"renormalise", call->renormalise},
      {"scale", call->scale},
      {"noise", call->noise},
      {"seed", call->seed},
      {"balance_coefficient", call->balance_coefficient},
      {"z_coefficient", call->z_coefficient},
      {"top_k", call->top_k},
      {"groups", call->groups},
      {"top_groups", call->top_groups},
      {"capacity", call->capacity},
      {"transposed", call->transposed},
      {"activation", call->activation},
      {"gated", call->gated},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "moe_ffn",
      operands, 5,
      options, 15,
      outputs, 8,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
