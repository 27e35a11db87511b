/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_CAUSAL_CONV1D_H
#define TESSERA_C_CAUSAL_CONV1D_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* causal convolution of 2 to 8 taps along tokens, for each channel by itself. output_t =
   activation(bias + sum_j weight[:, j] input_(t - width + 1 + j)); inputs before the first are
   initial_state */
typedef struct tessera_causal_conv1d_call {
  /* [batch, seq, dim] */
  const tessera_tensor* input;
  /* [dim, width]: in the dtype of input or in f32 */
  const tessera_tensor* weight;
  /* optional, [dim]: in the dtype of input or in f32 */
  const tessera_tensor* bias;
  /* optional, [sequences, width - 1, dim]: the inputs before the first, oldest first; 0 where it
     is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, width - 1, dim]: the last inputs, oldest first */
  tessera_tensor** final_state;
  /* one of none, silu, default none: silu(z) = z / (1 + exp(-z)) */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_causal_conv1d_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_causal_conv1d(const tessera_context* context,
    const tessera_stream* stream, const tessera_causal_conv1d_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "causal_conv1d",
      operands, 5,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
