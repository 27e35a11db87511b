/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_DEQUANTISE_CACHE_H
#define TESSERA_C_DEQUANTISE_CACHE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the floats that a pool of codes means. output = codes * scale */
typedef struct tessera_dequantise_cache_call {
  /* [pages, heads, page_size, dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* codes;
  /* [pages or 1, heads or 1, page_size or 1]: what a code times this means; broadcasts to
     [pages, heads, page_size] */
  const tessera_tensor* scale;
  /* output, [pages, heads, page_size, dim]: in the dtype that the option says */
  tessera_tensor** output;
  /* one of f32, f16, bf16, default f32: of output */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dequantise_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dequantise_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_dequantise_cache_call* call) {
  const tessera_operand operands[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"dtype", call->dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dequantise_cache",
      operands, 2,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
