/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_APPEND_TO_CACHE_H
#define TESSERA_C_APPEND_TO_CACHE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* writes the keys and values of new tokens into their pages. key_cache[slot / page_size, h, slot
   % page_size] = keys[t, h], where slot is slot_mapping[t], or that of position kv_lens[n] -
   query_start_loc[n + 1] + t of sequence n */
typedef struct tessera_append_to_cache_call {
  /* [tokens, heads, dim]: of the new tokens */
  const tessera_tensor* keys;
  /* optional, [tokens, heads, value_dim]: in the dtype of keys */
  const tessera_tensor* values;
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
  /* in-out, [pages, heads, page_size, dim]: other slots keep their bits; any strides but along
     the last axis */
  const tessera_tensor* key_cache;
  /* optional, in-out, [pages, heads, page_size, value_dim]: in the dtype of key_cache */
  const tessera_tensor* value_cache;
  /* optional, in-out, [pages, heads, page_size]: of codes; one for each token and head is made
     and written, others are read */
  const tessera_tensor* key_scale;
  /* optional, in-out, [pages, heads, page_size]: of codes; one for each token and head is made
     and written, others are read */
  const tessera_tensor* value_scale;
  /* bool, default false: true: those of each token and head, too, are read and not made */
  tessera_value read_scales;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_append_to_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_append_to_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_append_to_cache_call* call) {
  const tessera_operand operands[] = {
      {"keys", call->keys, 0},
      {"values", call->values, 0},
      {"slot_mapping", call->slot_mapping, 0},
      {"block_tables", call->block_tables, 0},
      {"kv_lens", call->kv_lens, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"num_seqs", call->num_seqs, 0},
      {"key_cache", call->key_cache, 0},
      {"value_cache", call->value_cache, 0},
      {"key_scale", call->key_scale, 0},
      {"value_scale", call->value_scale, 0},
  };
  const tessera_option options[] = {
      {"read_scales", call->read_scales},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "append_to_cache",
      operands, 11,
      options, 2,
      0, 0,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
