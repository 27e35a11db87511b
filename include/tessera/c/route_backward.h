/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_ROUTE_BACKWARD_H
#define TESSERA_C_ROUTE_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradient of route's logits. through weights, balance loss and z loss; none through the choice
   of experts */
typedef struct tessera_route_backward_call {
  /* [tokens, experts]: of the forward call */
  const tessera_tensor* logits;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* slots;
  /* [tokens, top_k] */
  const tessera_tensor* grad_weights;
  /* optional, [1] */
  const tessera_tensor* grad_balance_loss;
  /* optional, [1] */
  const tessera_tensor* grad_z_loss;
  /* output, [tokens, experts] */
  tessera_tensor** grad_logits;
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
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_route_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_route_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_route_backward_call* call) {
  const tessera_operand operands[] = {
      {"logits", call->logits, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"grad_weights", call->grad_weights, 0},
      {"grad_balance_loss", call->grad_balance_loss, 0},
      {"grad_z_loss", call->grad_z_loss, 0},
  };
  const tessera_output outputs[] = {
      {"grad_logits", call->grad_logits, 0},
  };
  const tessera_option options[] = {
      {"score", call->score},
      {"renormalise", call->renormalise},
      {"scale", call->scale},
      {"noise", call->noise},
      {"seed", call->seed},
      {"balance_coefficient", call->balance_coefficient},
      {"z_coefficient", call->z_coefficient},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "route_backward",
      operands, 6,
      options, 8,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
