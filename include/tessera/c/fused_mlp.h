/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_FUSED_MLP_H
#define TESSERA_C_FUSED_MLP_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a perceptron of two layers. output = act(input w1 + b1) w2 + b2; the hidden layer has input's
   dtype */
typedef struct tessera_fused_mlp_call {
  /* [..., in] */
  const tessera_tensor* input;
  /* [in, hidden]: 2 hidden columns where they are paired */
  const tessera_tensor* w1;
  /* optional, [hidden]: 2 hidden elements where they are paired */
  const tessera_tensor* b1;
  /* [hidden, out] */
  const tessera_tensor* w2;
  /* optional, [out] */
  const tessera_tensor* b2;
  /* output, [..., out]: in the dtype of input */
  tessera_tensor** output;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default gelu_tanh: swiglu and geglu
     take columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_fused_mlp_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_fused_mlp(const tessera_context* context,
    const tessera_stream* stream, const tessera_fused_mlp_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"w1", call->w1, 0},
      {"b1", call->b1, 0},
      {"w2", call->w2, 0},
      {"b2", call->b2, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "fused_mlp",
      operands, 5,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
