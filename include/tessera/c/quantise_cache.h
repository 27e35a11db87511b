/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_QUANTISE_CACHE_H
#define TESSERA_C_QUANTISE_CACHE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a pool of pages in codes of 8 or 4 bits with scales. scale = largest magnitude / largest code,
   1 for zeros; codes = round(input / scale) */
typedef struct tessera_quantise_cache_call {
  /* [pages, heads, page_size, dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* output, [pages, heads, page_size, dim]: in the dtype that the option says */
  tessera_tensor** codes;
  /* output, [pages or 1, heads or 1, page_size or 1]: what a code times this means; broadcasts
     to [pages, heads, page_size] */
  tessera_tensor** scale;
  /* one of i8, i4, e4m3fn, e5m2, default i8: of codes; integers are symmetric, up to 127 and 7 */
  tessera_value dtype;
  /* one of token_head, page, head, tensor, default token_head: what shares a scale */
  tessera_value scale_of;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantise_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantise_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantise_cache_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
  };
  const tessera_output outputs[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"dtype", call->dtype},
      {"scale_of", call->scale_of},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantise_cache",
      operands, 1,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
