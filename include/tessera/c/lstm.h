/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_LSTM_H
#define TESSERA_C_LSTM_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a layer of long short-term memory, in one direction or both. z = weight_ih x_t + bias_ih +
   weight_hh h_(t-1) + bias_hh in blocks i, f, g, o; c_t = sigmoid(f) c_(t-1) + sigmoid(i)
   tanh(g); h_t = sigmoid(o) tanh(c_t) */
typedef struct tessera_lstm_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, proj]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, proj, hidden]: projection of h; proj is hidden where it is left out */
  const tessera_tensor* weight_hr;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, proj]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* c0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* output, [batch, seq, directions * proj]: h of each token, 0 behind lengths */
  tessera_tensor** output;
  /* optional, output, [directions, batch, proj]: h after the last token */
  tessera_tensor** h_n;
  /* optional, output, [directions, batch, hidden]: c after the last token */
  tessera_tensor** c_n;
  /* optional, output, [batch, seq, directions, 5 * hidden [+ hidden] + proj]: of each step gates
     i, f, g, o, c before it, with weight_hr what that projects, and h before it; 0 behind
     lengths */
  tessera_tensor** reserve;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lstm_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lstm(const tessera_context* context,
    const tessera_stream* stream, const tessera_lstm_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"weight_hr", call->weight_hr, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"c0", call->c0, 0},
      {"lengths", call->lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"h_n", call->h_n, 0},
      {"c_n", call->c_n, 0},
      {"reserve", call->reserve, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lstm",
      operands, 9,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
