/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_SEQUENCE_MEAN_H
#define TESSERA_C_SEQUENCE_MEAN_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mean over the tokens of a sequence: all, the first ones, those of a mask, or packed. output[b]
   = sum over the tokens t of b that count of input[b,t] / how many count; 0 if none does */
typedef struct tessera_sequence_mean_call {
  /* [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: any strides but along the last
     axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [batch]: how many tokens count, the first ones; clamped to [0, seq] */
  const tessera_tensor* lengths;
  /* optional, [batch, seq]: tokens with a mask that is not 0 count */
  const tessera_tensor* mask;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, (heads,) dim] or packed [n, (heads,) dim]: 0 where no token counts */
  tessera_tensor** output;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_sequence_mean_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_sequence_mean(const tessera_context* context,
    const tessera_stream* stream, const tessera_sequence_mean_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"lengths", call->lengths, 0},
      {"mask", call->mask, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "sequence_mean",
      operands, 4,
      options, 1,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
