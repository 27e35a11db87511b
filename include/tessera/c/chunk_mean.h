/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_CHUNK_MEAN_H
#define TESSERA_C_CHUNK_MEAN_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* means over chunks of the tokens of a sequence, also packed (arXiv:2502.11089). output[b,c] =
   mean of input[b,t] over c chunk <= t < min((c + 1) chunk, seq) */
typedef struct tessera_chunk_mean_call {
  /* [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: any strides but along the last
     axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, ceil(seq / chunk), (heads,) dim] or packed [chunks, (heads,) dim]: packed:
     chunks in the order of sequences; rows beyond them are 0 */
  tessera_tensor** output;
  /* int, default 32: tokens of a chunk, at least 1 */
  tessera_value chunk;
  /* int, default none: rows of a packed output; more chunks than that are left out */
  tessera_value chunks;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_chunk_mean_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_chunk_mean(const tessera_context* context,
    const tessera_stream* stream, const tessera_chunk_mean_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"chunk", call->chunk},
      {"chunks", call->chunks},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "chunk_mean",
      operands, 2,
      options, 3,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
