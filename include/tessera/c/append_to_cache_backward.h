/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_APPEND_TO_CACHE_BACKWARD_H
#define TESSERA_C_APPEND_TO_CACHE_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the gradients of new keys and values, and of the caches before them. grad_keys[t, h] =
   grad_key_cache[slot / page_size, h, slot % page_size], which becomes 0; 0 for tokens that
   append_to_cache did not write */
typedef struct tessera_append_to_cache_backward_call {
  /* optional, [tokens]: page page_size + slot of each token; -1 skips it */
  const tessera_tensor* slot_mapping;
  /* optional, [max_seqs, pages_per_seq]: the pages of each sequence; read where new tokens lie */
  const tessera_tensor* block_tables;
  /* optional, [max_seqs]: lengths of the sequences with their new tokens */
  const tessera_tensor* kv_lens;
  /* optional, [max_seqs + 1]: sequence n has tokens query_start_loc[n] to query_start_loc[n + 1]
     - 1 */
  const tessera_tensor* query_start_loc;
  /* optional, [1]: how many sequences there are; all without it */
  const tessera_tensor* num_seqs;
  /* in-out, [pages, heads, page_size, dim]: of the cache after the call; becomes that of the
     cache before it */
  const tessera_tensor* grad_key_cache;
  /* optional, in-out, [pages, heads, page_size, value_dim]: in the dtype of grad_key_cache */
  const tessera_tensor* grad_value_cache;
  /* output, [tokens, heads, dim]: in the dtype of grad_key_cache */
  tessera_tensor** grad_keys;
  /* optional, output, [tokens, heads, value_dim]: there where grad_value_cache is */
  tessera_tensor** grad_values;
  /* int, default none: how many there are; not set: as many as slot_mapping has */
  tessera_value tokens;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_append_to_cache_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_append_to_cache_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_append_to_cache_backward_call* call) {
  const tessera_operand operands[] = {
      {"slot_mapping", call->slot_mapping, 0},
      {"block_tables", call->block_tables, 0},
      {"kv_lens", call->kv_lens, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"num_seqs", call->num_seqs, 0},
      {"grad_key_cache", call->grad_key_cache, 0},
      {"grad_value_cache", call->grad_value_cache, 0},
  };
  const tessera_output outputs[] = {
      {"grad_keys", call->grad_keys, 0},
      {"grad_values", call->grad_values, 0},
  };
  const tessera_option options[] = {
      {"tokens", call->tokens},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "append_to_cache_backward",
      operands, 7,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
