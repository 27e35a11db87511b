/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_PAGE_ATTENTION_H
#define TESSERA_C_PAGE_ATTENTION_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax attention of one query per sequence over a cache in pages. output[n,h] = sum_t
   softmax_t(cap(attn_scale * query[n,h] . key[t])) value[t] over the t < context_lens[n]; key[t]
   = key_cache[block_tables[n, t / page_size], g, t % page_size] */
typedef struct tessera_page_attention_call {
  /* [sequences, heads, head_dim]: head_dim is contiguous and 1 to 512 */
  const tessera_tensor* query;
  /* [pages, kv_heads, page_size, head_dim]: any strides but along head_dim; codes of i8, i4,
     e4m3fn or e5m2 have scales */
  const tessera_tensor* key_cache;
  /* [pages, kv_heads, page_size, value_dim]: value_dim may differ from head_dim; codes of i8,
     i4, e4m3fn or e5m2 have scales */
  const tessera_tensor* value_cache;
  /* [sequences]: how many tokens each sequence has, those of its queries included */
  const tessera_tensor* context_lens;
  /* [sequences, max_blocks]: which page holds tokens page_size n to page_size (n + 1) - 1;
     anything behind the last token */
  const tessera_tensor* block_tables;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, [pages, kv_heads, page_size]: what a code of key_cache times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* key_scale;
  /* optional, [pages, kv_heads, page_size]: what a code of value_cache times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* value_scale;
  /* output, [sequences, heads, value_dim]: sequences without tokens are 0 */
  tessera_tensor** output;
  /* optional, output, [sequences, heads]: natural logarithm; -inf for sequences without tokens */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value attn_scale;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value attn_logits_soft_cap;
  /* int, default none: at least 1: a row sees the last so many tokens up to its own, that one
     included */
  tessera_value sliding_window;
  /* int, default 0: work-groups that share the tokens of a row, up to 1024; 0 = chosen */
  tessera_value num_splits;
  /* int, default none: of the longest sequence, by which splits are chosen; results do not
     depend on it */
  tessera_value max_context_len;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_page_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_page_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_page_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key_cache", call->key_cache, 0},
      {"value_cache", call->value_cache, 0},
      {"context_lens", call->context_lens, 0},
      {"block_tables", call->block_tables, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"key_scale", call->key_scale, 0},
      {"value_scale", call->value_scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"attn_scale", call->attn_scale},
      {"attn_logits_soft_cap", call->attn_logits_soft_cap},
      {"sliding_window", call->sliding_window},
      {"num_splits", call->num_splits},
      {"max_context_len", call->max_context_len},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "page_attention",
      operands, 8,
      options, 6,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
