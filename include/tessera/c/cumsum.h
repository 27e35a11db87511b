/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_CUMSUM_H
#define TESSERA_C_CUMSUM_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cumulative sums over tokens, of whole sequences or of chunks of them. output_t = scale sum of
   input_s over begin <= s <= t; reverse: over t <= s < end; [begin, end) is t's sequence or
   chunk */
typedef struct tessera_cumsum_call {
  /* [batch, seq, heads(, dim)], with head_first [batch, heads, seq(, dim)]: any strides */
  const tessera_tensor* input;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads(, dim)], with head_first [batch, heads, seq(, dim)]: 0 for tokens
     of no sequence */
  tessera_tensor** output;
  /* int, default none: tokens, at least 1; not set: whole sequences */
  tessera_value chunk;
  /* bool, default false: sums begin at the last token */
  tessera_value reverse;
  /* bool, default false: heads before tokens */
  tessera_value head_first;
  /* float, default 1: multiplies the sums */
  tessera_value scale;
  /* one of f32, f16, bf16, default none: of output; that of input where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_cumsum_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_cumsum(const tessera_context* context,
    const tessera_stream* stream, const tessera_cumsum_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"chunk", call->chunk},
      {"reverse", call->reverse},
      {"head_first", call->head_first},
      {"scale", call->scale},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "cumsum",
      operands, 2,
      options, 6,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
