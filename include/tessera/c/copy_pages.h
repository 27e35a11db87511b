/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_COPY_PAGES_H
#define TESSERA_C_COPY_PAGES_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* copies pages within a pool or from another one. pool[target_pages[i]] =
   source[source_pages[i]], all reads before any write; source is pool where it is left out */
typedef struct tessera_copy_pages_call {
  /* [pairs]: -1 skips the pair */
  const tessera_tensor* source_pages;
  /* [pairs]: -1 skips the pair; of equal ones the last wins */
  const tessera_tensor* target_pages;
  /* optional, [source_pages, ...]: another pool, of pages as those of pool */
  const tessera_tensor* source;
  /* in-out, [pages, ..., dim]: two to four axes; other pages keep their bits */
  const tessera_tensor* pool;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_copy_pages_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_copy_pages(const tessera_context* context,
    const tessera_stream* stream, const tessera_copy_pages_call* call) {
  const tessera_operand operands[] = {
      {"source_pages", call->source_pages, 0},
      {"target_pages", call->target_pages, 0},
      {"source", call->source, 0},
      {"pool", call->pool, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "copy_pages",
      operands, 4,
      options, 1,
      0, 0,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
