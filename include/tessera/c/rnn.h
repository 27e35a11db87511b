/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RNN_H
#define TESSERA_C_RNN_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a layer of plain recurrent cells, in one direction or both. h_t = activation(weight_ih x_t +
   bias_ih + weight_hh h_(t-1) + bias_hh) */
typedef struct tessera_rnn_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* output, [batch, seq, directions * hidden]: h of each token, 0 behind lengths */
  tessera_tensor** output;
  /* optional, output, [directions, batch, hidden]: h after the last token */
  tessera_tensor** h_n;
  /* optional, output, [batch, seq, directions, 2 * hidden]: of each step h, and h before it; 0
     behind lengths */
  tessera_tensor** reserve;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of tanh, relu, default tanh: of the sum */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rnn_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rnn(const tessera_context* context,
    const tessera_stream* stream, const tessera_rnn_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"h_n", call->h_n, 0},
      {"reserve", call->reserve, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rnn",
      operands, 7,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
