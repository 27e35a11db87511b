/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_ROUTE_H
#define TESSERA_C_ROUTE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* chooses experts for tokens, and the places that the tokens have with them. weights[t, r] =
   scale score[t, e] / sum of the scores of t's kept choices, e = expert_ids[t, r] the r-th best */
typedef struct tessera_route_call {
  /* [tokens, experts]: any stride between rows */
  const tessera_tensor* logits;
  /* optional, [experts]: joins scores when experts are chosen, not their weights; -inf excludes
     an expert */
  const tessera_tensor* bias;
  /* output, [tokens, top_k]: best first; -1: no expert is left */
  tessera_tensor** expert_ids;
  /* output, [tokens, top_k]: place among the tokens of the expert, in order of tokens; -1:
     dropped */
  tessera_tensor** slots;
  /* output, [tokens, top_k]: 0 where a choice is dropped */
  tessera_tensor** weights;
  /* output, [experts]: tokens that have a place */
  tessera_tensor** counts;
  /* output, [experts + 1]: the row at which an expert's places begin: sums of counts, or
     multiples of capacity */
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
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_route_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_route(const tessera_context* context,
    const tessera_stream* stream, const tessera_route_call* call) {
  const tessera_operand operands[] = {
      {"logits", call->logits, 0},
      {"bias", call->bias, 0},
  };
  const tessera_output outputs[] = {
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
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "route",
      operands, 2,
      options, 12,
      outputs, 7,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
